"""Statements on large beta (Sec. 5.3)."""

from __future__ import annotations

from sih.claim import beta
from sih.results.judging import MATCH, Measured, Statement, ratio
from sih.results.tables import law_in_words


def _limit_over_ml(data: beta.BetaCurves) -> list[Measured]:
    ratios = []
    for law, found in data.laws.items():
        ml = zip(found.ml.tolist(), found.ml_error.tolist(), strict=True)
        minus_ml = zip(found.minus_ml.tolist(), found.minus_ml_error.tolist(), strict=True)
        for length, of, over in zip(data.config.lengths, ml, minus_ml, strict=True):
            # Beyond 32 tokens errors are so rare that this is a ratio of two small counts;
            # the exponents cover that case.
            if length <= 32:
                ratios.append(ratio(of, over, f"T = {length}, {law_in_words(law)}"))
    return ratios


LARGE_BETA = Statement(
    "large-beta", "Sec. 5.3; Fig. 3 right",
    "For large beta the estimator predicts as well as maximum likelihood.",
    beta.EXPERIMENT, _limit_over_ml, MATCH, "KL/ML",
    "KL of the estimator at beta = infinity over KL of ML, the worst of the lengths up to 32, for "
    "matrices of two "
    "distributions",
    "It comes close but stays above ML, more so for longer sequences: its errors fall with a "
    "smaller "
    "exponent (asymptotics).",
)  # fmt: skip

STATEMENTS = (LARGE_BETA,)
