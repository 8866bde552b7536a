"""What large beta does (Sec. 5.3)."""

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
            # Past 32 tokens errors are so rare that the ratio is that of two small counts; there the exponents speak.
            if length <= 32:
                ratios.append(ratio(of, over, f"T = {length}, {law_in_words(law)}"))
    return ratios


LARGE_BETA = Statement(
    "large-beta", "Sec. 5.3; Fig. 3 right",
    "For large beta the estimator predicts as well as maximum likelihood.",
    beta.EXPERIMENT, _limit_over_ml, MATCH, "KL/ML",
    "KL of the estimator at beta = infinity over KL of ML, the worst of the lengths up to 32, for matrices of two "
    "distributions",
    "It comes close and stays above ML, the more so the longer the sequence: its errors fall with a smaller "
    "exponent (asymptotics).",
)  # fmt: skip

STATEMENTS = (LARGE_BETA,)
