"""Every experiment by its name in `sih figure`, in the order of the paper, ours last."""

from typing import Any

from sih.experiments import (
    agreement,
    attention_maps,
    beta,
    cancellation,
    certificates,
    channel_account,
    channel_course,
    claim_cumulative,
    claim_expectations,
    claim_theorem,
    constructions,
    errata,
    few_heads,
    head_counts,
    mechanism,
    reference_predictors,
    scaling,
    switching_lags,
    teaser,
    trained,
    training_courses,
    wrong_lag,
)
from sih.experiments.experiment import Experiment

_IN_ORDER: tuple[Experiment[Any, Any], ...] = (
    *(teaser.EXPERIMENT, mechanism.EXPERIMENT, certificates.EXPERIMENT, claim_expectations.HISTOGRAM, beta.EXPERIMENT),
    *(reference_predictors.EXPERIMENT, constructions.EXPERIMENT, trained.EXPERIMENT),
    *attention_maps.EXPERIMENTS,
    *(agreement.EXPERIMENT, scaling.EXPERIMENT),
    *(claim_expectations.EXPERIMENT, claim_expectations.EXPERIMENT_25),
    *(claim_cumulative.EXPERIMENT, claim_cumulative.EXPERIMENT_25, claim_theorem.EXPERIMENT, wrong_lag.EXPERIMENT),
    *(head_counts.EXPERIMENT, errata.EXPERIMENT, training_courses.EXPERIMENT),
    *(channel_account.EXPERIMENT, channel_course.EXPERIMENT, few_heads.EXPERIMENT),
    *(cancellation.EXPERIMENT, switching_lags.EXPERIMENT),
)
EXPERIMENTS: dict[str, Experiment[Any, Any]] = {experiment.name: experiment for experiment in _IN_ORDER}


def experiment_named(name: str) -> Experiment[Any, Any]:
    """Find the experiment of this name, or raise a ValueError with all names."""
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no figure {name!r}; the figures are {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
