from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from sih.claim import claim_histogram
from sih.paper import heads, recipes
from sih.report import subjects
from sih.results.experiment import Experiment
from sih.results.figure import shown

SMALL = claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5))
Experiments = dict[str, Experiment[Any, Any]]


def show_only(experiments: Experiments, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let these be all figures that there are. The statements stay."""
    figures = tuple(shown(one) for one in experiments.values())
    stated = tuple(subjects.statements().values())
    only = SimpleNamespace(FIGURES=figures, STATEMENTS=stated)
    monkeypatch.setattr(subjects, "SUBJECTS", (only,))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Experiments:
    """Two small figures, and one that wants a model nobody has trained."""
    largest, nobody = (
        heads.HeadCountsConfig(largest=4),
        recipes.CoursesConfig(models=("standard-1.9",)),
    )
    chosen: list[Experiment[Any, Any]] = [
        dataclasses.replace(claim_histogram.EXPERIMENT, config=SMALL),
        dataclasses.replace(heads.EXPERIMENT, config=largest),
        dataclasses.replace(recipes.EXPERIMENT, config=nobody),
    ]
    experiments = {experiment.name: experiment for experiment in chosen}
    show_only(experiments, monkeypatch)
    return experiments
