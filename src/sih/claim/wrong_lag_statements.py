"""Statements on the rate of picking the wrong lag (Secs. 5.3 and 5.4)."""

from __future__ import annotations

from functools import partial

from sih.claim import wrong_lag
from sih.claim.wrong_lag import WrongLagRates
from sih.results.judging import Measured, Rule, Statement
from sih.results.tables import braces


def _exponents(name: str, reference: str, data: WrongLagRates) -> list[Measured]:
    label = f"lags {braces(data.config.lags)}, {data.config.num_states} states"
    return [Measured(data.exponent[name] / data.exponent[reference], None, label)]


ASYMPTOTICS = Statement(
    "asymptotics", "Sec. 5.3",
    "In the limit of long sequences the estimator leads to the same result as maximum likelihood.",
    wrong_lag.EXPERIMENT, partial(_exponents, "estimator", "ML"), Rule("at least", 0.95, 1e-6), "of ML's exponent",
    "exponent at which the estimator's rate of wrong lags falls, over that of ML (exact)",
    "Both end at the true lag with certainty, but the estimator needs more transitions for the same error rate.",
)  # fmt: skip

ONE_HEAD_RATE = Statement(
    "one-head-rate", "Sec. 5.4",
    "With a single head the construction sees only every K-th transition: the same algorithm, worse sample complexity.",
    wrong_lag.EXPERIMENT, partial(_exponents, "single head", "estimator"), Rule("at most", 0.8, 0.95), "× exponent",
    "exponent of the wrong-lag rate with a single head, over that with all (exact; 1/K = 0.33 if transitions "
    "were independent evidence)",
    "It is slower, but less than the number of transitions suggests.",
)  # fmt: skip

STATEMENTS = (ASYMPTOTICS, ONE_HEAD_RATE)
