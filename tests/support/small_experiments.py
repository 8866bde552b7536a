"""Experiments small enough to make in a moment."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar

from sih.claim import claim_histogram
from sih.paper import heads as head_counts
from sih.results.experiment import Experiment
from sih.training.runs.run_store import RunStore

C = TypeVar("C")
D = TypeVar("D")
SMALL = claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5))
HISTOGRAM = dataclasses.replace(claim_histogram.EXPERIMENT, config=SMALL)
HEADS = dataclasses.replace(head_counts.EXPERIMENT, config=head_counts.HeadCountsConfig(largest=4))


def counted(experiment: Experiment[C, D]) -> tuple[Experiment[C, D], list[Any]]:
    """The experiment, and a list that grows by the configuration with every computation."""
    calls: list[Any] = []

    @functools.wraps(experiment.compute)
    def compute(config: C, store: RunStore) -> D:
        calls.append(config)
        return experiment.compute(config, store)

    return dataclasses.replace(experiment, compute=compute), calls
