from __future__ import annotations

import numpy as np
import pytest

from sih.experiments.training_courses import Course
from sih.figures.course_panels import draw_training, place
from sih.results.curves import Compared
from sih.runs.run_store import open_run


@pytest.mark.parametrize(
    ("lags", "compared", "group", "label"),
    [
        (
            (1, 2, 3),
            Compared("standard", (1, 3, 1), seeds=(2,)),
            "lags {1,2,3}, heads [1,3,1]",
            "seed 2",
        ),
        ((1, 3), Compared("standard", (1, 1, 1), seeds=(0,)), "other lags", "{1,3} [1,1,1]"),
        (
            (1, 3, 4),
            Compared("standard", (1, 4, 1), seeds=(1,)),
            "other lags",
            "{1,3,4} [1,4,1], seed 1",
        ),
        (
            (1, 2, 3),
            Compared("standard", (1, 1), seeds=(0,)),
            "lags {1,2,3}, other models",
            "[1,1]",
        ),
        (
            (1, 2, 3),
            Compared("standard", (1, 3, 1), 128, seeds=(0,)),
            "lags {1,2,3}, other models",
            "[1,3,1], d=128",
        ),
        (
            (1, 2, 3, 4, 5),
            Compared("standard", (1, 2, 1), seeds=(0,)),
            "lags {1,2,3,4,5}, other models",
            "[1,2,1]",
        ),
        (
            (1, 2, 3),
            Compared("standard", (1, 3, 1), seeds=(0,), plain=True),
            "trained as the paper trains",
            "run",
        ),
        (
            (1, 2, 3),
            Compared("disentangled", (1, 3, 1), seeds=(0,)),
            "disentangled",
            "{1,2,3} [1,3,1]",
        ),
    ],
)
def test_every_kind_of_run_has_its_place(
    lags: tuple[int, ...], compared: Compared, group: str, label: str
) -> None:
    (_, title), found = place(Course("run", lags, compared, [0], [1.0], 1.0, 0.5))
    assert (title, found) == (group, label)


def test_a_runs_own_metrics_are_drawn() -> None:
    run = open_run("standard-1.3")
    loss, kl, by_position = draw_training(run).axes
    assert len(np.asarray(loss.lines[0].get_xdata())) == sum("loss" in line for line in run.metrics)
    assert np.asarray(kl.lines[0].get_ydata())[-1] == run.evaluations[-1]["kl"]
    for line, wanted in zip(by_position.lines, ("kl", "ml", "bma"), strict=True):
        values = run.evaluations[-1 if wanted == "kl" else 0][f"{wanted}_along"][3:-1]
        assert np.asarray(line.get_ydata()).tolist() == [max(value, 1e-6) for value in values]
