from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.small_configs import small
from support.small_runs import make
from support.views import RUNS, view_of

import sih
from sih.base.errors import FieldError
from sih.explorer.channels_view import make_channels
from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import described, fitting_model
from sih.explorer.view import make_view
from sih.training.runs.run import Run

MATRICES: dict[str, dict[str, Any]] = {
    "usual": {},
    "seed": {"matrix_seed": 3},
    "concentration": {"concentration": 0.5},
    "uniform": {"matrix_law": "uniform"},
    "uniform 11": {"matrix_law": "uniform", "matrix_seed": 11},
    "sparse": {"matrix_law": "sparse", "concentration": 2.0, "matrix_seed": 4},
    "given": {"matrix": ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3))},
}


def test_the_list_says_how_each_was_trained() -> None:
    listed = {
        entry["name"]: (entry["length"], entry["trained"], entry["briefly"])
        for entry in described(RUNS)
    }
    assert listed["paper-1.2.3"] == (128, "Adam, unaided (the paper's setting)", "Adam only")
    assert listed["paper-1.2.3-length32"] == (32, "Adam, unaided", "Adam only")
    assert listed["standard-1.2.3"][1].startswith("SOAP, harmonic start, ")
    assert listed["disentangled-1.3"][2] == "Adam, tied"


def test_every_shipped_model_can_be_shown_with_the_task_it_names() -> None:
    for entry in described(RUNS):
        task = {name: entry[name] for name in ("states", "length", "matrix")}
        value = {
            **task,
            "lags": list(entry["lags"]),
            "models": [{"kind": "trained", "name": entry["name"]}],
        }
        view = view_of(value)
        after = view.arrays["kl/0"][value["lags"][-1] :]
        assert after.mean() < 0.2, entry["name"]


@pytest.mark.parametrize("case", MATRICES)
def test_a_model_is_shown_with_the_matrix_that_it_was_trained_on(case: str, tmp_path: Path) -> None:
    config = small(**MATRICES[case], steps=1)
    make(tmp_path / "model", config)
    runs = {"model": Run(tmp_path / "model")}
    (entry,) = json.loads(json.dumps(described(runs)))
    task = read_state({name: entry[name] for name in ("lags", "states", "length", "matrix")}).task()
    assert torch.equal(task.P, runs["model"].task.P)
    assert fitting_model("models.0", "model", task, runs) is runs["model"].model


def test_a_model_of_a_uniform_matrix_is_refused_on_another_of_its_seed(tmp_path: Path) -> None:
    make(tmp_path / "model", small(matrix_law="uniform", matrix_seed=11, steps=1))
    runs = {"model": Run(tmp_path / "model")}
    other = sih.Task(sih.random_transition_matrix(3, rng=11), (1, 2), 12)
    with pytest.raises(FieldError, match="a matrix of its own"):
        fitting_model("models.0", "model", other, runs)


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("offsets", ["both", "keys", "rotary"])
def test_a_model_with_relative_positions_is_shown_between_tokens(
    start: bool, offsets: str, tmp_path: Path
) -> None:
    """Attention, weights, law and parts are those of the model's own pass, in the rows of its tokens."""
    shape = {"model": "relative", "heads": (1, 2, 1), "start": start, "offsets": (offsets,)}
    make(tmp_path / "mine", small(**shape, steps=2))
    runs = {"mine": Run(tmp_path / "mine")}
    (entry,) = described(runs)
    value = {name: entry[name] for name in ("lags", "states", "length", "matrix")}
    state = read_state(
        {**value, "lags": [1, 2], "models": [{"kind": "trained", "name": entry["name"]}]}
    )
    view, model = make_view(state, runs), runs["mine"].model
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    with torch.no_grad():
        trace = model.trace(tokens)
        law = model.predict(tokens)[0].numpy()
    first = int(start)
    for index, head in enumerate(("1.1", "2.1", "2.2", "3.1")):
        whole = trace[f"{head}/attention"][0].numpy()
        shown = view.arrays["attention/0"][index] / 65535
        assert np.abs(shown - whole[first:, first:]).max() < 1e-5
        if start:
            assert np.abs(view.arrays["start/0"][index] - whole[1:, 0]).max() < 1e-6
    assert ("start/0" in view.arrays) == view.header["models"][0]["start"] == start
    assert np.abs(view.arrays["law/0"] - law).max() < 1e-6
    parts = [array for name, array in view.arrays.items() if name.startswith("part/0/")]
    assert np.abs(sum(parts) - trace.output[0].numpy()).max() < 1e-5
    last = trace["3.1/attention"][0].numpy()
    for j, lag in enumerate((1, 2)):
        for i in range(lag - 1, 12):
            found = np.exp(view.arrays["log_weights/0"][i, j])
            assert abs(found - last[i + first, i + first - lag + 1]) < 1e-5
    channels = make_channels(state, 0, runs)
    total = sum(
        (channels.arrays[f"part/{name}"] for name in channels.header["parts"]), np.zeros((12, 2))
    )
    scores = trace["3.1/scores"][0, first:, first:].double() / model.config.temperature
    for i in range(1, 12):
        wanted = torch.stack([scores[i, i], scores[i, i - 1]]).numpy()
        own = total[i] + channels.arrays["common"][i]
        assert np.abs(own - (wanted - wanted.mean())).max() < 1e-5
    assert channels.arrays["lag/votes"].shape == (2, 12, 12)


def test_a_disentangled_model_with_relative_positions_is_left_out_and_refused(
    tmp_path: Path,
) -> None:
    make(tmp_path / "mine", small(model="relative-disentangled", steps=1))
    runs = {"mine": Run(tmp_path / "mine")}
    assert described(runs) == []
    with pytest.raises(FieldError, match="mine is a relative-disentangled model, whose output"):
        fitting_model("models.0", "mine", runs["mine"].task, runs)


def test_long_sequences_of_relative_models_have_no_channels(tmp_path: Path) -> None:
    make(tmp_path / "mine", small(model="relative", heads=(1, 1, 1), length=140, steps=1))
    runs = {"mine": Run(tmp_path / "mine")}
    (entry,) = described(runs)
    value = {name: entry[name] for name in ("states", "length", "matrix")}
    state = read_state({**value, "lags": [1, 2], "models": [{"kind": "trained", "name": "mine"}]})
    with pytest.raises(FieldError, match="are shown up to length 128; got 140") as found:
        make_channels(state, 0, runs)
    assert found.value.field == "models.0"
