"""Statements on Claim 1 along a single sequence (App. E)."""

from __future__ import annotations

from sih.claim import claim_cumulative
from sih.claim.claim_cumulative import CumulativePaths
from sih.results.judging import Measured, Rule, Statement


def _lags_settle(data: CumulativePaths) -> list[Measured]:
    each = claim_cumulative.settled_after(data)
    return [Measured(n, None, f"lag {lag}") for lag, n in zip(data.lags, each, strict=True)]


CUMULATIVE, CUMULATIVE_25 = (
    Statement(
        f"cumulative-{experiment.config.num_states}-states", "App. E",
        "Along one sequence, even after few transitions, the average normalised probability is the largest for the "
        f"true lag ({experiment.config.num_states} states).",
        experiment, _lags_settle, Rule("at most", 10, 1000), "transitions",
        "transitions after which the true lag's average stays the largest, the slowest of 12 lags",
        "True in the end; before that, for the slowest lag, another lag's average is ahead at times.",
    )
    for experiment in (claim_cumulative.EXPERIMENT, claim_cumulative.EXPERIMENT_25)
)  # fmt: skip

STATEMENTS = (CUMULATIVE, CUMULATIVE_25)
