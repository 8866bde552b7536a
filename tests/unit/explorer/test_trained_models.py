from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.small_configs import small
from support.small_runs import make
from support.views import RUNS, view_of

import sih
from sih.base.errors import FieldError
from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import described, fitting_model
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
