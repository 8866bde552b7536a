from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sih.cli import figure_command, reproduce_command
from sih.experiments import claim_expectations, head_counts, training_courses
from sih.experiments import table as experiments_table
from sih.results.experiment import Experiment

SMALL = claim_expectations.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5))
Experiments = dict[str, Experiment[Any, Any]]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Experiments:
    """Two small figures, and one that wants a model nobody has trained."""
    largest, nobody = (
        head_counts.HeadCountsConfig(largest=4),
        training_courses.CoursesConfig(models=("standard-1.9",)),
    )
    chosen: list[Experiment[Any, Any]] = [
        dataclasses.replace(claim_expectations.HISTOGRAM, config=SMALL),
        dataclasses.replace(head_counts.EXPERIMENT, config=largest),
        dataclasses.replace(training_courses.EXPERIMENT, config=nobody),
    ]
    experiments = {experiment.name: experiment for experiment in chosen}
    for module in (experiments_table, figure_command, reproduce_command):
        monkeypatch.setattr(module, "EXPERIMENTS", experiments)
    return experiments
