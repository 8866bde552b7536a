"""Statements that need no training: the construction (Sec. 5.1), the estimator (Sec. 5.3, App. A), heads (Sec. 5.4)."""

from __future__ import annotations

from sih.experiments import (
    beta,
    certificates,
    claim_cumulative,
    claim_expectations,
    claim_histogram,
    constructions,
    wrong_lag,
)
from sih.experiments import head_counts as heads
from sih.experiments.cells import braces
from sih.report.rules import Judge, Measured, Rule, judged, ratio

EXACT = Rule("at most", 1e-9, 1e-6)
"""float64 leaves some 1e-13 in circuits of this size."""
MATCH = Rule("at most", 1.10, 1.25)
"""Two KL divergences match if one is at most a tenth above the other; up to a quarter with a remark."""


def _certificate(id: str, section: str, statement: str, circuit: str) -> Judge:
    @judged(
        id, section, statement, figure="certificates", rule=EXACT,
        unit="largest error",
        quantity="largest difference between weights that were run and the closed form, over lag sets and sequences",
        remark="The closed form is the corrected one (errata), from the first position where it is claimed.",
    )  # fmt: skip
    def measure(data: certificates.CertificateErrors) -> Measured:
        worst, each = certificates.largest(data, circuit)
        return Measured(worst, None, parts=tuple(Measured(error, None, braces(lags)) for lags, error in each))

    return measure


proposition = _certificate(
    "prop-1", "Sec. 5.1, Prop. 1",
    "For contiguous lags a three-layer disentangled transformer with one second-layer head a lag mixes the rows of P "
    "with weights exponential in the averaged normalised probabilities.",
    "Prop. 1, third layer by masks",
)  # fmt: skip
positions = _certificate(
    "any-lags", "Sec. 5.4, Apps. F and G",
    "The construction extends to lags that are not contiguous, with a third layer that compares positions.",
    "third layer by positions",
)  # fmt: skip
two_lags = _certificate(
    "two-lags", "Sec. 5.4, App. H",
    "For two lags, contiguous or not, another third layer lets a single second-layer head use the whole past.",
    "two lags, 1 head",
)  # fmt: skip


@judged(
    "claim-1", "Sec. 5.3, Claim 1; Fig. 3 left",
    "On average the normalised probability is the largest for the true lag, for each of 1000 matrices with 10 states "
    "and each of 12 lags.",
    figure="claim_histogram", rule=Rule("at least", 0.0, 0.0),
    unit="smallest gap",
    quantity="smallest gap between the true lag's expectation and the largest other, computed exactly",
)  # fmt: skip
def claim(data: claim_histogram.ClaimMargins) -> Measured:
    low = min(min(row) for row in data.margins)
    return Measured(low, (low - 2 * data.error, low + 2 * data.error), _gaps(data.margins))


@judged(
    "claim-1-25-states", "App. E",
    "Claim 1 for 25 states: the normalised probability is the largest for the true lag, for each of 10 matrices.",
    figure="claim_expectations_25", rule=Rule("at least", 0.0, 0.0),
    unit="smallest gap",
    quantity="smallest gap between the true lag's expectation and the largest other, computed exactly",
)  # fmt: skip
def claim_25(data: claim_expectations.ExpectationBars) -> Measured:
    low = min(min(row) for row in data.margins)
    return Measured(low, (low - 2 * data.error, low + 2 * data.error), _gaps(data.margins))


def _gaps(margins: list[list[float]]) -> str:
    positive = sum(gap > 0 for row in margins for gap in row)
    return f"{positive:,} of {sum(map(len, margins)):,} gaps are positive"


def _cumulative(states: int, figure: str) -> Judge:
    @judged(
        f"cumulative-{states}-states", "App. E",
        f"Along one sequence, even after few transitions, the average normalised probability is the largest for the "
        f"true lag ({states} states).",
        figure=figure, rule=Rule("at most", 10, 1000),
        unit="transitions",
        quantity="transitions after which the true lag's average stays the largest, the slowest of 12 lags",
        remark="True in the end; before that, for the slowest lag, another lag's average is ahead at times.",
    )  # fmt: skip
    def measure(data: claim_cumulative.CumulativePaths) -> Measured:
        each = claim_cumulative.settled_after(data)
        slowest = data.lags[each.index(max(each))]
        parts = tuple(Measured(n, None, f"lag {lag}") for lag, n in zip(data.lags, each, strict=True))
        return Measured(max(each), None, f"lag {slowest}", parts)

    return measure


cumulative, cumulative_25 = _cumulative(10, "claim_cumulative"), _cumulative(25, "claim_cumulative_25")


@judged(
    "large-beta", "Sec. 5.3; Fig. 3 right",
    "For large beta the estimator predicts as well as maximum likelihood.",
    figure="beta", rule=MATCH,
    unit="× ML",
    quantity="KL of the estimator at beta = infinity over KL of ML, the worst of the lengths up to 32",
    remark="It comes close and stays above ML, the more so the longer the sequence: its errors fall with a smaller "
    "exponent (asymptotics).",
)  # fmt: skip
def large_beta(data: beta.BetaCurves) -> Measured:
    each = zip(data.config.lengths, data.ml, data.over_ml, data.over_ml_error, strict=True)
    # Past 32 tokens errors are so rare that the ratio is that of two small counts; there the exponents speak.
    return MATCH.worst(ratio(ml, (over, error), f"T = {n}") for n, ml, over, error in each if n <= 32)


@judged(
    "asymptotics", "Sec. 5.3",
    "In the limit of long sequences the estimator leads to the same result as maximum likelihood.",
    figure="wrong_lag", rule=Rule("at least", 0.95, 1e-6),
    unit="× ML's exponent",
    quantity="exponent at which the estimator's rate of wrong lags falls, over that of ML (exact)",
    remark="Both end at the true lag with certainty, but the estimator needs more transitions for the same error rate.",
)  # fmt: skip
def asymptotics(data: wrong_lag.WrongLagRates) -> Measured:
    return Measured(data.exponent["estimator"] / data.exponent["ML"], None, _lags(data))


@judged(
    "one-head-rate", "Sec. 5.4",
    "With a single head the construction sees only every K-th transition: the same algorithm, worse sample complexity.",
    figure="wrong_lag", rule=Rule("at most", 0.8, 0.95),
    unit="× exponent",
    quantity="exponent of the wrong-lag rate with a single head, over that with all (exact; 1/K = 0.33 if transitions "
    "told independently)",
    remark="Slower, but less than the number of transitions suggests.",
)  # fmt: skip
def one_head_rate(data: wrong_lag.WrongLagRates) -> Measured:
    return Measured(data.exponent["single head"] / data.exponent["estimator"], None, _lags(data))


def _lags(data: wrong_lag.WrongLagRates) -> str:
    return f"lags {braces(data.config.lags)}, {data.config.num_states} states"


@judged(
    "construction-ml", "Sec. 6, main results; Fig. 4",
    "The construction with the optimal number of heads matches maximum likelihood.",
    figure="constructions", rule=MATCH,
    unit="× ML",
    quantity="mean KL of the construction over that of ML past the largest lag, the worst of four lag sets",
    remark="Near ML but above it: at the first positions some heads have nothing to average (erratum 4).",
)  # fmt: skip
def construction_ml(data: constructions.ConstructionCurves) -> Measured:
    return MATCH.worst(_construction_ratios(data, "construction", "ML"))


@judged(
    "one-head-kl", "Sec. 5.4; Fig. 4",
    "With one head the construction still solves the task, less well than with the optimal number.",
    figure="constructions", rule=Rule("at least", 1.0, 1.0),
    unit="× optimal heads",
    quantity="mean KL of the construction with one head over that with the optimal number, the least of four lag sets",
)  # fmt: skip
def one_head_kl(data: constructions.ConstructionCurves) -> Measured:
    return Rule("at least", 1.0, 1.0).worst(_construction_ratios(data, "construction, 1 head", "construction"))


@judged(
    "two-lags-optimal", "Secs. 5.4 and 6; Fig. 4, last panel",
    "For two lags the single-head construction does as well as the one with more heads.",
    figure="constructions", rule=MATCH,
    unit="× optimal heads",
    quantity="mean KL of the single-head construction for two lags over that with the optimal number of heads",
    remark="A little above it.",
)  # fmt: skip
def two_lags_optimal(data: constructions.ConstructionCurves) -> Measured:
    return MATCH.worst(_construction_ratios(data, "two lags, 1 head", "construction"))


def _construction_ratios(data: constructions.ConstructionCurves, name: str, reference: str) -> list[Measured]:
    """A ratio for every lag set that has the circuit, with its interval over matrices."""
    each = zip(data.config.lag_sets, data.mean, data.mean_over, strict=True)
    return [ratio(mean[reference], over[reference][name], braces(lags)) for lags, mean, over in each if name in mean]


@judged(
    "head-range", "Sec. 5.4",
    "Lags that are not contiguous need between as many heads as lags and the largest minus the smallest lag plus one.",
    figure="heads", rule=Rule("at most", 0, 0),
    unit="lag sets",
    quantity="lag sets within 1 .. 12 whose least number of heads is outside that range (each least number proved)",
)  # fmt: skip
def head_range(data: heads.HeadCounts) -> Measured:
    outside = sum(count.sets for count in data.counts if not count.lags <= count.heads <= count.span)
    return Measured(outside + len(data.unsettled), None, f"of {data.sets:,} lag sets")


PAPER: tuple[Judge, ...] = (
    proposition,
    claim,
    large_beta,
    asymptotics,
    one_head_rate,
    one_head_kl,
    positions,
    head_range,
    two_lags,
    construction_ml,
    two_lags_optimal,
    claim_25,
    cumulative,
    cumulative_25,
)


@judged(
    "ours-bayes-weights", "beyond the paper",
    "A three-layer attention-only transformer can hold the exact posterior over lags in its last layer's attention: "
    "temper the first layer, add up in the second, scale the third.",
    figure="certificates", rule=Rule("at most", 1e-5, 1e-3),
    unit="largest error",
    quantity="largest difference of an attention weight from the posterior, over lag sets and sequences, float64",
)  # fmt: skip
def bayes_weights(data: certificates.CertificateErrors) -> Measured:
    worst, each = certificates.largest(data, certificates.POSTERIOR)
    return Measured(worst, None, parts=tuple(Measured(error, None, braces(lags)) for lags, error in each))


@judged(
    "ours-bayes-kl", "beyond the paper",
    "Run as weights, that circuit predicts as well as the Bayesian model average, so better than maximum likelihood.",
    figure="constructions", rule=Rule("at most", 1.001, 1.01),
    unit="× BMA",
    quantity="mean KL of the Bayes-optimal construction over that of BMA, the worst of four lag sets",
)  # fmt: skip
def bayes_kl(data: constructions.ConstructionCurves) -> Measured:
    return MATCH.worst(_construction_ratios(data, "Bayes-optimal construction", "BMA"))


@judged(
    "ours-fewer-heads", "beyond the paper",
    "The least number of heads is the chromatic number of a distance graph of the integers: often fewer than the "
    "largest minus the smallest lag plus one.",
    figure="heads", rule=Rule("at least", 1, 1),
    unit="lag sets",
    quantity="lag sets within 1 .. 12 that need fewer heads than that",
)  # fmt: skip
def fewer_heads(data: heads.HeadCounts) -> Measured:
    fewer = sum(count.sets for count in data.counts if count.heads < count.span)
    return Measured(fewer, None, f"of {data.sets:,} lag sets")


OURS: tuple[Judge, ...] = (bayes_weights, bayes_kl, fewer_heads)
