from __future__ import annotations

import numpy as np

from sih.results.plots.run import draw_training
from sih.training.runs.run_store import open_run


def test_a_runs_own_metrics_are_drawn() -> None:
    run = open_run("standard-1.3")
    loss, kl, by_position = draw_training(run).axes
    assert len(np.asarray(loss.lines[0].get_xdata())) == sum("loss" in line for line in run.metrics)
    assert np.asarray(kl.lines[0].get_ydata())[-1] == run.evaluations[-1]["kl"]
    for line, wanted in zip(by_position.lines, ("kl", "ml", "bma"), strict=True):
        values = run.evaluations[-1 if wanted == "kl" else 0][f"{wanted}_along"][3:-1]
        assert np.asarray(line.get_ydata()).tolist() == [max(value, 1e-6) for value in values]
