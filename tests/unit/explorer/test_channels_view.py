from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.views import RUNS, unpack

import sih
from sih.base.errors import FieldError
from sih.explorer.channels_view import make_channels
from sih.explorer.parse_state import read_state
from sih.explorer.view_bytes import pack


def channels_of(value: dict[str, Any], index: int = 0) -> Any:
    return unpack(pack(make_channels(read_state(value), index, RUNS)))


def named(name: str, length: int = 40) -> dict[str, Any]:
    return {"models": [{"kind": "trained", "name": name}], "length": length}


@pytest.mark.parametrize(
    "value",
    [
        {"length": 40},
        {"length": 40, "models": [{"kind": "bayes"}]},
        {"length": 40, "models": [{"kind": "looking"}]},
        {"length": 40, "lags": [1, 3], "models": [{"kind": "two-lags"}]},
        {"length": 40, "models": [{"kind": "relative"}]},
        {"length": 40, "lags": [1, 3, 4], "models": [{"kind": "relative-bayes"}]},
        named("standard-1.2.3"),
        named("standard-1.2.3-1.3.1.1"),
        named("disentangled-1.2.3"),
    ],
    ids=str,
)
def test_bars_add_up_to_the_scores_of_the_model(value: dict[str, Any]) -> None:
    found, state = channels_of(value), read_state(value)
    task, choice = state.task(), state.models[0]
    model = (
        RUNS[str(choice.name)].model if choice.trained else sih.construct(task, **choice.options())
    )
    tokens = sih.sample(task, 1, rng=torch.Generator().manual_seed(state.seed)).tokens
    with torch.no_grad():
        scores = model.trace(tokens).scores[-1][0].mean(dim=0).double() / model.config.temperature
    scores = scores[model.first :, model.first :]
    total = found.arrays["common"] + sum(
        found.arrays[f"part/{name}"] for name in found.header["parts"]
    )
    for i in range(task.max_lag - 1, task.length):
        wanted = torch.stack([scores[i, i - k + 1] for k in task.lags]).numpy()
        wanted = wanted - wanted.mean()
        assert np.abs(total[i] - wanted).max() < 2e-4
        assert np.abs(found.arrays["score"][i] - wanted).max() < 2e-4
    middle = [
        f"{layer}.{h + 1}"
        for layer, count in enumerate(model.config.heads, 1)
        for h in range(count)
    ]
    assert found.header["heads"] == [
        head for head in middle if head[0] not in ("1", str(len(model.config.heads)))
    ]


def test_a_circuit_carries_and_the_looking_one_looks() -> None:
    carries, looks = (
        channels_of({"length": 40}),
        channels_of({"length": 40, "models": [{"kind": "looking"}]}),
    )
    for found, way, other in ((carries, "values", "attention"), (looks, "attention", "values")):
        assert np.array_equal(found.arrays["lag/votes"], found.arrays[f"lag/{way}"])
        assert not found.arrays[f"lag/{other}"].any()
        assert not found.arrays[f"size/{other}"].any()
        assert found.arrays[f"size/{way}"][:, 20].max() == 255


@pytest.mark.parametrize("kind", ["relative", "relative-bayes"])
def test_with_relative_positions_each_transition_votes_for_its_likeliest_lag(kind: str) -> None:
    """By the definition: of the lags, the one whose step from parent to token has the greatest probability."""
    value = {"length": 40, "models": [{"kind": kind}]}
    found, state = channels_of(value), read_state(value)
    task = state.task()
    P = task.P.tolist()
    (row,) = sih.sample(task, 1, rng=torch.Generator().manual_seed(state.seed)).tokens.tolist()
    votes = found.arrays["lag/votes"]
    assert votes.shape == (1, 40, 40)
    assert not found.arrays["lag/attention"].any()
    for n in range(3, 40):
        chances = [P[row[n - k]][row[n]] for k in task.lags]
        alike = max(chances) - min(chances) < 1e-9
        for i in range(n, 40):
            vote = votes[0, i, n]
            if kind == "relative-bayes" and i < 39 and not alike:
                assert vote
            assert vote == 0 or chances[vote - 1] == max(chances)
    assert not votes[0, :, :3].any()


def test_the_colour_of_a_key_is_the_lag_that_layer_1_found_most_likely() -> None:
    state = read_state({"length": 40})
    found, task = channels_of({"length": 40}), state.task()
    tokens = sih.sample(task, 1, rng=torch.Generator().manual_seed(state.seed)).tokens
    trace = sih.construct(task).trace(tokens)
    for key in range(3, 30):
        stored = [trace["1.1/attention"][0, key, key - k].item() for k in task.lags]
        (head,) = [h for h in range(3) if trace.attention[1][0, h, 30, key] > 1e-6]
        voted = found.arrays["lag/votes"][head, 30, key]
        assert voted == 0 or stored[voted - 1] == max(stored)
    assert (found.arrays["lag/votes"][:, 30] > 0).sum() > 15


def test_periods_are_those_of_the_weights() -> None:
    assert channels_of(named("disentangled-1.2.3")).header["periods"]["2.2"][0] == 4
    assert channels_of({"length": 20}).header["periods"] == {}


def test_what_has_no_channels_says_why() -> None:
    for value, field, words in (
        (named("standard-1.2.3-1.3"), "models.0", "no layer between"),
        (named("standard-1.3"), "models.0", "trained for the lags 1 3"),
        ({"lags": [1, 2, 3], "models": [{"kind": "two-lags"}]}, "models.0", "two lags"),
    ):
        with pytest.raises(FieldError, match=words) as found:
            channels_of(value)
        assert found.value.field == field
    with pytest.raises(FieldError, match="number 1"):
        channels_of({"length": 20}, 1)
