"""States what the estimator does: Claim 1 and what follows from it (Secs. 5.3 and 5.4, App. E)."""

from functools import partial

from sih.experiments import beta, claim_cumulative, claim_expectations, wrong_lag
from sih.experiments.claim_cumulative import CumulativePaths
from sih.experiments.wrong_lag import WrongLagRates
from sih.results.experiment import braces
from sih.results.judging import MATCH, Measured, Rule, Statement, ratio
from sih.theory.coverage import OPEN, claim_status

POSITIVE = Rule("at least", 0.0, 0.0)


def _smallest_gap(
    data: claim_expectations.ClaimMargins | claim_expectations.ExpectationBars,
) -> list[Measured]:
    gaps = [gap for row in data.margins for gap in row]
    low = min(gaps)
    status = claim_status(data.lags).values()
    proven = f"{sum(word != OPEN for word in status)} of {len(status)} pairs of true lag and rival are theorems"
    label = f"{sum(gap > 0 for gap in gaps):,} of {len(gaps):,} gaps are positive; {proven}"
    return [Measured(low, (low - 2 * data.error, low + 2 * data.error), label)]


SMALLEST_GAP = (
    "smallest gap between the true lag's expectation and the largest other, computed exactly"
)
CLAIM = Statement(
    "claim-1", "Sec. 5.3, Claim 1; Fig. 3 left",
    "On average the normalised probability is the largest for the true lag, for each of 1000 matrices with 10 states "
    "and each of 12 lags.",
    claim_expectations.HISTOGRAM, _smallest_gap, POSITIVE, "smallest gap", SMALLEST_GAP,
)  # fmt: skip
CLAIM_25 = Statement(
    "claim-1-25-states", "App. E",
    "Claim 1 for 25 states: the normalised probability is the largest for the true lag, for each of 10 matrices.",
    claim_expectations.EXPERIMENT_25, _smallest_gap, POSITIVE, "smallest gap", SMALLEST_GAP,
)  # fmt: skip


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


def _limit_over_ml(data: beta.BetaCurves) -> list[Measured]:
    ml = zip(data.ml, data.ml_error, strict=True)
    over_ml = zip(data.minus_ml, data.minus_ml_error, strict=True)
    each = zip(data.config.lengths, ml, over_ml, strict=True)
    # Past 32 tokens errors are so rare that the ratio is that of two small counts; there the exponents speak.
    return [ratio(of, over, f"T = {n}") for n, of, over in each if n <= 32]


LARGE_BETA = Statement(
    "large-beta", "Sec. 5.3; Fig. 3 right",
    "For large beta the estimator predicts as well as maximum likelihood.",
    beta.EXPERIMENT, _limit_over_ml, MATCH, "× ML",
    "KL of the estimator at beta = infinity over KL of ML, the worst of the lengths up to 32",
    "It comes close and stays above ML, the more so the longer the sequence: its errors fall with a smaller "
    "exponent (asymptotics).",
)  # fmt: skip


def _exponents(name: str, reference: str, data: WrongLagRates) -> list[Measured]:
    label = f"lags {braces(data.config.lags)}, {data.config.num_states} states"
    return [Measured(data.exponent[name] / data.exponent[reference], None, label)]


ASYMPTOTICS = Statement(
    "asymptotics", "Sec. 5.3",
    "In the limit of long sequences the estimator leads to the same result as maximum likelihood.",
    wrong_lag.EXPERIMENT, partial(_exponents, "estimator", "ML"), Rule("at least", 0.95, 1e-6), "× ML's exponent",
    "exponent at which the estimator's rate of wrong lags falls, over that of ML (exact)",
    "Both end at the true lag with certainty, but the estimator needs more transitions for the same error rate.",
)  # fmt: skip
ONE_HEAD_RATE = Statement(
    "one-head-rate", "Sec. 5.4",
    "With a single head the construction sees only every K-th transition: the same algorithm, worse sample complexity.",
    wrong_lag.EXPERIMENT, partial(_exponents, "single head", "estimator"), Rule("at most", 0.8, 0.95), "× exponent",
    "exponent of the wrong-lag rate with a single head, over that with all (exact; 1/K = 0.33 if transitions "
    "told independently)",
    "It is slower, but less than the number of transitions suggests.",
)  # fmt: skip
