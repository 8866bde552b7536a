"""Claim 1 for more states (App. E)."""

from __future__ import annotations

from sih.claim import claim_expectations, claim_histogram
from sih.claim.coverage import OPEN, claim_status
from sih.results.judging import Measured, Rule, Statement

POSITIVE = Rule("at least", 0.0, 0.0)


def _smallest_gap(
    data: claim_histogram.ClaimMargins | claim_expectations.ExpectationBars,
) -> list[Measured]:
    gaps = data.margins
    low = gaps.min().item()
    status = claim_status(data.lags).values()
    proven = f"{sum(word != OPEN for word in status)} of {len(status)} pairs of true lag and rival are theorems"
    label = f"{int((gaps > 0).sum()):,} of {gaps.numel():,} gaps are positive; {proven}"
    return [Measured(low, (low - 2 * data.error, low + 2 * data.error), label)]


SMALLEST_GAP = (
    "smallest gap between the true lag's expectation and the largest other, computed exactly"
)

CLAIM = Statement(
    "claim-1", "Sec. 5.3, Claim 1; Fig. 3 left",
    "On average the normalised probability is the largest for the true lag, for each of 1000 matrices with 10 states "
    "and each of 12 lags.",
    claim_histogram.EXPERIMENT, _smallest_gap, POSITIVE, "smallest gap", SMALLEST_GAP,
)  # fmt: skip

CLAIM_25 = Statement(
    "claim-1-25-states", "App. E",
    "Claim 1 for 25 states: the normalised probability is the largest for the true lag, for each of 10 matrices.",
    claim_expectations.EXPERIMENT_25, _smallest_gap, POSITIVE, "smallest gap", SMALLEST_GAP,
)  # fmt: skip

STATEMENTS = (CLAIM, CLAIM_25)
