from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.views import RUNS, TRAINED, view_of

import sih
from sih.base.errors import FieldError
from sih.explorer.parse_state import read_state
from sih.explorer.view import make_view


def test_the_references_are_the_librarys() -> None:
    value = {
        "length": 40,
        "lags": [1, 3],
        "models": [{"beta": 7.0, "temper": 0.5, "evidence": "sum"}],
    }
    view, task = view_of(value), read_state(value).task()
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    batch = sih.Batch(tokens, torch.tensor([view.header["lag"]]))
    laws = {"truth": sih.known_lag(tokens, batch.lags, task), "bma": sih.bma(tokens, task)}
    laws["ml"] = sih.maximum_likelihood(tokens, task)
    for name, law in laws.items():
        assert np.abs(view.arrays[f"law/{name}"] - law[0].numpy()).max() < 1e-6
    for name in ("bma", "ml"):
        assert (
            np.abs(
                view.arrays[f"kl/{name}"] - sih.kl_to_truth(laws[name], batch, task)[0].numpy()
            ).max()
            < 1e-5
        )
    estimator = sih.selective_weights(tokens, task, beta=7.0, temper=0.5, evidence="sum")
    assert np.abs(np.exp(view.arrays["log_weights/selective"]) - estimator[0].numpy()).max() < 1e-6


@pytest.mark.parametrize("kind", ["paper", "mask", "position"])
def test_a_circuit_without_a_sink_has_beta_once_for_each_head(kind: str) -> None:
    """What the page says below the race: of three heads, each averages its own, and the averages are added up."""
    value = {"length": 256, "lags": [1, 2, 3], "models": [{"kind": kind, "beta": 2.0}]}
    view = view_of(value)
    assert (view.header["models"][0]["heads"][1], view.header["models"][0]["sink"]) == (3, False)
    copied = torch.from_numpy(np.array(view.arrays["log_weights/0"])).softmax(dim=-1)[200:]
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    as_printed, times_heads = (
        (sih.selective_weights(tokens, read_state(value).task(), beta=beta)[0, 200:] - copied)
        .abs()
        .max()
        .item()
        for beta in (2.0, 6.0)
    )
    assert times_heads < 0.002
    assert as_printed > 0.1


def test_an_edit_changes_its_token_and_nothing_before_it() -> None:
    before, after = view_of({"length": 40}), view_of({"length": 40, "edits": [[25, 0]], "seed": 19})
    changed = int(before.arrays["tokens"][25] == 0)
    after = view_of({"length": 40, "edits": [[25, changed]]})
    assert np.flatnonzero(before.arrays["tokens"] != after.arrays["tokens"]).tolist() == [25]
    for name in ("law/0", "law/bma", "log_weights/0", "log_weights/posterior"):
        assert np.array_equal(before.arrays[name][:25], after.arrays[name][:25]), name
        assert not np.array_equal(before.arrays[name][25:], after.arrays[name][25:]), name


def test_mixed_heads_show_weights_reads_and_a_residual() -> None:
    view = view_of({"length": 30, "models": [{"kind": "bayes"}, {}]})
    c = sih.construct(read_state({"length": 30}).task(), target="bayes").circuit
    u, g = view.arrays["mixed/0/weights"], view.arrays["mixed/0/query"]
    assert np.abs(u - c.profile.weights.numpy()).max() < 1e-6
    assert u[0].tolist() == [1.0] * 27
    n = np.arange(-2, 29)
    assert view.header["models"][0]["parabola"] == 0.25
    assert np.abs(np.diff(np.diff(g[0] + g[1])) + 2 * 0.25)[4:].max() < 1e-5, (
        "less the ripple it is a parabola"
    )
    assert len(g[0]) == len(n)
    counted = view.arrays["mixed/0/counted"]
    assert np.abs(counted - (np.eye(3) - 1 / 3)).max() < 1e-6
    assert view.arrays["mixed/0/residual"].max() < 1e-10
    assert "mixed/0/key" not in view.arrays
    assert not [name for name in view.arrays if name.startswith("mixed/1/")]
    one = (
        view_of({"length": 20, "models": [{"kind": "both"}]})
        if sih.two_sided((1, 2, 3), 20, 1)
        else view
    )
    counted = one.arrays["mixed/0/counted"][7].astype(np.float64)
    for k in range(3):  # F by its definition, a loop over heads and both sides
        for other in range(3):
            lag, found, o = k + 1, other + 1, 7
            total = (
                one.arrays["mixed/0/weights"][0, o]
                * one.arrays["mixed/0/query"][0, o + found - lag + 2]
            )
            total += (
                one.arrays["mixed/0/weights"][0, o - lag + 1]
                * one.arrays["mixed/0/key"][0, o + found]
            )
            counted[k, other] -= total
    left = counted - counted.mean(axis=0) - counted.mean(axis=1, keepdims=True) + counted.mean()
    assert np.abs(left).max() < 1e-3
    assert one.header["models"][0]["parabola"] is None


@pytest.mark.parametrize("model", [{"kind": "bayes"}, {"kind": "looking"}, {"evidence": "sum"}])
def test_what_is_paid_beside_a_sink_is_sent_however_small(model: dict[str, Any]) -> None:
    state = {"length": 30, "models": [model]}
    view, choice = view_of(state), read_state(state).models[0]
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    attention = (
        sih.construct(read_state(state).task(), **choice.options())
        .trace(tokens)
        .attention[1][0]
        .numpy()
    )
    assert view.arrays["beside/0"].shape == attention.shape
    for head, others in zip(attention[..., 1:], view.arrays["beside/0"][..., 1:], strict=True):
        assert np.abs(others / 65535 - head / head.max()).max() < 1e-4


RELATIVE = ["relative", "relative-bayes"]


@pytest.mark.parametrize("kind", RELATIVE)
@pytest.mark.parametrize(("lags", "length"), [([1, 2, 3], 5), ([1, 3], 40), ([1, 2, 16], 256)])
def test_relative_positions_are_shown_between_tokens(
    kind: str, lags: list[int], length: int
) -> None:
    """Row i of every array is that of token i: row i + 1 of the model's own trace, the start token's key apart."""
    value = {"length": length, "lags": lags, "models": [{}, {"kind": kind}]}
    if length == 5:
        value["models"] = [{"kind": kind}, {"kind": kind}]  # the paper's circuit needs more tokens
    view, state = view_of(value), read_state(value)
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    task = state.task()
    model = sih.construct(task, **state.models[1].options())
    assert isinstance(model, sih.DisentangledRelativeTransformer)
    trace = model.trace(tokens)
    heads = [f"{n}.{h + 1}" for n, count in enumerate(model.config.heads, 1) for h in range(count)]
    for index, head in enumerate(heads):
        whole = trace[f"{head}/attention"][0].numpy()
        shown = view.arrays["attention/1"][index] / 65535
        assert np.abs(shown - whole[1:, 1:]).max() < 1e-5
        start = view.arrays["start/1"][index]
        assert np.abs(start - whole[1:, 0]).max() < 1e-6
        assert np.abs(shown.sum(axis=-1) + start - 1).max() < 2e-3
    assert view.header["models"][1]["start"]
    assert np.abs(view.arrays["law/1"] - model.predict(tokens)[0].numpy()).max() < 1e-6
    last = trace["3.1/attention"][0].numpy()
    for j, lag in enumerate(lags):
        for i in range(lag - 1, length):
            found = np.exp(view.arrays["log_weights/1"][i, j])
            assert abs(found - last[i + 1, i + 1 - lag + 1]) < 1e-5
    names = {name.split("/", 2)[2] for name in view.arrays if name.startswith("block/1/")}
    assert names == {name for name in trace.names if name.endswith("/offset")} - {
        "3.1/offset",
        "2.1/offset",
        *(name for name in trace.names if name.startswith("3.1/")),
    }
    for name in names:
        block = trace[name][0, 1:].numpy()
        assert block.shape == (length, lags[-1] + 2)
        assert (
            np.abs(view.arrays[f"block/1/{name}"] / block.max() - block / block.max()).max() < 1e-6
        )


def test_what_is_paid_beside_a_heavy_start_token_is_sent_however_small() -> None:
    view = view_of({"length": 30, "models": [{"kind": "relative-bayes"}]})
    head = view.arrays["attention/0"][2]
    assert head.max() == 0
    beside = view.arrays["beside/0"][0] / 65535
    for i in range(3, 30):  # each of the transitions so far alike
        assert np.abs(beside[i, 3 : i + 1] - 1).max() < 1e-4
        assert beside[i, :3].max() == 0
    assert view.arrays["start/0"][2].min() > 1 - 1e-6


def test_a_model_without_a_start_token_has_none() -> None:
    view = view_of({"length": 30})
    assert not view.header["models"][0]["start"]
    assert not [name for name in view.arrays if name.startswith(("start/", "block/"))]


def test_parts_of_a_trained_model_add_up_to_its_output() -> None:
    view = view_of(TRAINED)
    total = sum(array for name, array in view.arrays.items() if name.startswith("part/0/"))
    law = np.exp(total) / np.exp(total).sum(axis=-1, keepdims=True)
    assert np.abs(law - view.arrays["law/0"]).max() < 1e-5
    names = [name for name in view.arrays if name.startswith("part/0/")]
    assert names[:3] == ["part/0/token", "part/0/position", "part/0/1.1/output"]


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({"lags": [1, 3], "models": [{"kind": "mask"}]}, "models.0", "use 'position'"),
        ({"models": [{}, {"kind": "two-lags"}]}, "models.1", "two lags"),
        ({"models": [{"lam": 1.0}]}, "models.0.lam", "too small"),
        ({"length": 5}, "models.0", "too short"),
        (
            {"models": [{"kind": "trained", "name": "../../etc/passwd"}]},
            "models.0",
            "no trained model",
        ),
        (
            {"models": [{"kind": "trained", "name": "standard-1.3"}]},
            "models.0",
            "trained for the lags 1 3",
        ),
        (
            {"models": [{"kind": "trained", "name": "standard-1.2.3"}], "length": 129},
            "models.0",
            "up to 128 tokens",
        ),
        (
            {"matrix": {"seed": 1}, "models": [{"kind": "trained", "name": "standard-1.2.3"}]},
            "models.0",
            "its own",
        ),
    ],
)
def test_what_does_not_fit_is_explained_at_its_control(
    value: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(FieldError, match=words) as found:
        make_view(read_state(value), RUNS)
    assert found.value.field == field


def test_an_edit_that_no_lag_allows_is_explained() -> None:
    value = {
        "length": 20,
        "matrix": {"kind": "rows", "rows": [[0.0, 1.0], [0.5, 0.5]]},
        "states": 2,
        "lags": [1],
    }
    with pytest.raises(FieldError, match="impossible under every lag") as found:
        make_view(read_state({**value, "edits": [[10, 0], [11, 0]]}), RUNS)
    assert found.value.field == "edits"


@given(
    st.integers(0, 2**32),
    st.sampled_from([{}, {"kind": "bayes"}, {"kind": "position", "evidence": "sum"}]),
)
def test_views_hold_laws_and_attention(seed: int, model: dict[str, Any]) -> None:
    view = view_of({"length": 24, "seed": seed, "models": [model]})
    assert np.abs(view.arrays["law/0"].sum(axis=-1) - 1).max() < 1e-5
    attention = view.arrays["attention/0"].astype(np.float64) / 65535
    assert np.abs(attention.sum(axis=-1) - 1).max() < 1e-3
    assert np.abs(np.triu(attention, 1)).max() == 0
