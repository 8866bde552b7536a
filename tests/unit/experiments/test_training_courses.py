from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sih.experiments import training_courses as recipes
from sih.runs.run_store import RunStore, open_run
from sih.runs.run_writer import Recorder
from sih.training.trainer import TrainConfig


@pytest.mark.parametrize(
    ("config", "group", "label"),
    [
        (TrainConfig(seed=2), "lags {1,2,3}, heads [1,3,1]", "seed 2"),
        (TrainConfig(lags=(1, 3), heads=(1, 1, 1)), "other lags", "{1,3} [1,1,1]"),
        (TrainConfig(lags=(1, 3, 4), heads=(1, 4, 1), seed=1), "other lags", "{1,3,4} [1,4,1], seed 1"),
        (TrainConfig(heads=(1, 1)), "lags {1,2,3}, other models", "[1,1]"),
        (TrainConfig(dim=128), "lags {1,2,3}, other models", "[1,3,1], d=128"),
        (TrainConfig(lags=(1, 2, 3, 4, 5), heads=(1, 2, 1)), "lags {1,2,3,4,5}, other models", "[1,2,1]"),
        (TrainConfig(model="disentangled"), "disentangled", "{1,2,3} [1,3,1]"),
    ],
)
def test_every_kind_of_run_has_its_place(config: TrainConfig, group: str, label: str) -> None:
    assert recipes.place(config) == (group, label)


def test_all_that_is_shipped_is_shown() -> None:
    data = recipes.compute(recipes.config(), RunStore())
    assert [course.name for course in data.courses] == RunStore().names()
    assert data.missing == []
    for course in data.courses:
        assert course.kl[-1] == open_run(course.name).evaluations[-1]["kl"]
        assert course.steps[-1] == open_run(course.name).config.steps
        assert course.bma < course.ml
    figure = recipes.draw(recipes.Data.from_dict(json.loads(json.dumps(data.to_dict()))))
    shown = sum(len(ax.lines) - 1 for ax in figure.axes if ax.get_visible())  # a line of ML in each
    assert shown == len(RunStore().names())
    assert len(recipes.table(data)) == 1 + len(RunStore().names())


def test_a_run_of_ones_own(tmp_path: Path) -> None:
    config = TrainConfig(
        lags=(1, 2), states=3, length=12, heads=(1, 2), dim=8, qk_dim=4, steps=4, batch=2, evaluate_every=2, held_out=5
    )
    for _ in Recorder(config, tmp_path / "run", threads=1):
        pass
    data = recipes.compute(recipes.Config((str(tmp_path / "run"), "none such")), RunStore())
    (course,) = data.courses
    assert course.steps == [0, 2, 4]
    assert data.missing == ["none such"]
    ax = recipes.draw(data).axes[0]
    assert np.asarray(ax.lines[1].get_ydata()).tolist() == [kl / course.ml for kl in course.kl]
