"""What large beta does (Sec. 5.3)."""

from __future__ import annotations

from sih.claim import beta
from sih.results.judging import MATCH, Measured, Statement, ratio


def _limit_over_ml(data: beta.BetaCurves) -> list[Measured]:
    ml = zip(data.ml.tolist(), data.ml_error.tolist(), strict=True)
    over_ml = zip(data.minus_ml.tolist(), data.minus_ml_error.tolist(), strict=True)
    each = zip(data.config.lengths, ml, over_ml, strict=True)
    # Past 32 tokens errors are so rare that the ratio is that of two small counts; there the exponents speak.
    return [ratio(of, over, f"T = {n}") for n, of, over in each if n <= 32]


LARGE_BETA = Statement(
    "large-beta", "Sec. 5.3; Fig. 3 right",
    "For large beta the estimator predicts as well as maximum likelihood.",
    beta.EXPERIMENT, _limit_over_ml, MATCH, "KL/ML",
    "KL of the estimator at beta = infinity over KL of ML, the worst of the lengths up to 32",
    "It comes close and stays above ML, the more so the longer the sequence: its errors fall with a smaller "
    "exponent (asymptotics).",
)  # fmt: skip

STATEMENTS = (LARGE_BETA,)
