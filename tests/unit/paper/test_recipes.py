from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from support.pictures import through_file
from support.small_runs import make

from sih.paper import recipes as training_courses
from sih.paper import recipes_figure
from sih.paper.recipes import Course
from sih.results.curves import Compared
from sih.training.config import TrainConfig
from sih.training.runs.run_store import SHIPPED, RunStore, open_run


def test_all_that_is_shipped_is_shown() -> None:
    data = training_courses.compute(training_courses.EXPERIMENT.config, RunStore())
    assert [course.name for course in data.courses] == RunStore().names(papers_task=True)
    assert data.missing == ()
    assert [course.name for course in data.courses if course.compared.plain] == [
        name
        for name in RunStore().names()
        if name.startswith("paper-")
        or (name.startswith("relative-") and open_run(name).config.optimiser.batch == 256)
    ]
    for course in data.courses:
        assert course.kl[-1] == open_run(course.name).evaluations[-1]["kl"]
        assert course.steps[-1] == open_run(course.name).config.optimiser.steps
        assert course.bma < course.ml
        kept = json.loads((SHIPPED / course.name / "evaluation.json").read_text())
        assert course.fresh == tuple(kept["kl_over_ml"])
    figure = recipes_figure.draw(through_file(data))
    legends = [ax.get_legend() for ax in figure.axes if ax.get_visible()]
    said = [
        text.get_text() for legend in legends if legend is not None for text in legend.get_texts()
    ]
    assert sorted(float(words.rpartition(": ")[2]) for words in said) == sorted(
        float(f"{course.fresh[0]:.2f}") for course in data.courses if course.fresh
    )
    shown = sum(len(ax.lines) - 1 for ax in figure.axes if ax.get_visible())  # a line of ML in each
    assert shown == len(RunStore().names(papers_task=True))
    assert len(recipes_figure.table(data)) == 1 + len(RunStore().names(papers_task=True))


def test_a_run_of_ones_own(tmp_path: Path) -> None:
    config = TrainConfig(
        lags=(1, 2),
        states=3,
        length=12,
        heads=(1, 2),
        dim=8,
        qk_dim=4,
        steps=4,
        batch=2,
        evaluate_every=2,
        held_out=5,
    )
    make(tmp_path / "run", config)
    data = training_courses.compute(
        training_courses.CoursesConfig((str(tmp_path / "run"), "none such")), RunStore()
    )
    (course,) = data.courses
    assert course.steps.tolist() == [0, 2, 4]
    assert course.fresh is None
    assert course.kl_over_ml == course.kl[-1] / course.ml
    assert data.missing == ("none such",)
    ax = recipes_figure.draw(data).axes[0]
    assert np.asarray(ax.lines[1].get_ydata()).tolist() == (course.kl / course.ml).tolist()


@pytest.mark.parametrize(
    ("lags", "compared", "group", "label"),
    [
        (
            (1, 2, 3),
            Compared("standard", (1, 3, 1), seeds=(2,)),
            "lags {1,2,3}, heads [1,3,1]",
            "seed 2",
        ),
        (
            (1, 3),
            Compared("standard", (1, 1, 1), seeds=(0,)),
            "other lags or states",
            "{1,3} [1,1,1]",
        ),
        (
            (1, 3, 4),
            Compared("standard", (1, 4, 1), seeds=(1,)),
            "other lags or states",
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
            "trained as in the paper",
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
    course = Course("run", lags, compared, torch.tensor([0]), torch.ones(1), 1.0, 0.5)
    (_, title), found = recipes_figure.place(course)
    assert (title, found) == (group, label)
