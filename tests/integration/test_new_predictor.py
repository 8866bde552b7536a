"""Adding a predictor is a line in one table: the command and the figure have it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from support.pictures import same

import sih
from sih.paper import predictors as reference_predictors
from sih.paper import predictors_figure
from sih.paper.predictors import PredictorsConfig
from sih.predictors.predictors import PREDICTORS, Predictor
from sih.task.sample_file import save_sample
from sih.training.runs.run_store import RunStore

UNIFORM = """
import sys, torch
from sih.predictors.predictors import PREDICTORS, Predictor
PREDICTORS["uniform"] = Predictor("uniform", lambda tokens, task: torch.ones(*tokens.shape, 5, dtype=torch.float64) / 5)
from sih.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_in_the_command(tmp_path: Path, task: sih.Task, rng: torch.Generator) -> None:
    save_sample(tmp_path / "a.npz", sih.sample(task, 2, rng=rng), task, seed=0)
    command = [
        sys.executable,
        "-c",
        UNIFORM,
        "predict",
        str(tmp_path / "a.npz"),
        "--predictor",
        "uniform",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (np.load(tmp_path / "a.predictions.npz")["law"] == 0.2).all()


def test_in_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PREDICTORS, "new", Predictor("new one", sih.stationary_law))
    config = PredictorsConfig(lag_sets=((1, 2),), num_states=2, length=8, matrices=2, sequences=4)
    found = reference_predictors.compute(config, RunStore())
    for panel in found.panels:
        assert same(panel.kl["new one"], panel.kl[PREDICTORS["stationary"].label])
    (drawn,) = predictors_figure.draw(found).legends
    assert [text.get_text() for text in drawn.get_texts()][-1] == "new one"
