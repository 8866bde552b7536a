"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import pytest
from support.findings import number_of

from sih.experiments import beta, claim_cumulative, claim_expectations, wrong_lag
from sih.report import claim_statements as claim
from sih.theory.monte_carlo import PAPER_LAGS


@pytest.mark.parametrize(("gap", "verdict"), [(0.01, "holds"), (-0.01, "does not hold")])
def test_claim(gap: float, verdict: str) -> None:
    margins = [[0.1, 0.2], [gap, 0.3]]
    found = claim.CLAIM.judge(claim_expectations.ClaimMargins(3, (1, 2), margins, 1e-11))
    assert (number_of(found).value, found.verdict) == (gap, verdict)
    assert number_of(found).label.endswith("2 of 2 pairs of true lag and rival are theorems")
    bars = claim_expectations.ExpectationBars(
        3, 2, (1, 2), [[0.0] * 2] * 2, [[0.0] * 2] * 2, margins, 1e-11
    )
    assert claim.CLAIM_25.judge(bars).verdict == verdict


def test_how_much_of_the_claim_is_a_theorem() -> None:
    found = claim.CLAIM.judge(claim_expectations.ClaimMargins(10, PAPER_LAGS, [[0.1] * 12], 1e-11))
    assert number_of(found).label == (
        "12 of 12 gaps are positive; 101 of 132 pairs of true lag and rival are theorems"
    )


def test_a_gap_within_the_error_is_no_proof() -> None:
    found = claim.CLAIM.judge(claim_expectations.ClaimMargins(3, (1, 2), [[1e-12, 0.2]], 1e-11))
    assert found.verdict == "holds with a remark"
    assert number_of(found).interval == pytest.approx((1e-12 - 2e-11, 1e-12 + 2e-11), rel=1e-9)


def test_a_gap_of_nothing_is_not_positive() -> None:
    found = claim.CLAIM.judge(
        claim_expectations.ClaimMargins(3, (1, 2), [[0.0, 0.2], [0.1, -0.1]], 1e-11)
    )
    assert number_of(found).label.startswith("2 of 4 gaps are positive; ")


def test_cumulative_averages_are_followed_to_the_end() -> None:
    own, other = [0.5, 0.4, 0.6, 0.7], [0.4, 0.5, 0.4, 0.3]
    data = claim_cumulative.CumulativePaths(
        (1, 2), [[own, other], [other, own]], [[0.7, 0.3], [0.3, 0.7]]
    )
    assert claim_cumulative.settled_after(data) == [3, 3]
    always = claim_cumulative.CumulativePaths(
        (1, 2), [[[0.9], [0.1]], [[0.1], [0.9]]], [[0.7, 0.3], [0.3, 0.7]]
    )
    assert claim_cumulative.settled_after(always) == [1, 1]
    never = claim_cumulative.CumulativePaths(
        (1, 2), [[other, own], [own, other]], [[0.7, 0.3], [0.3, 0.7]]
    )
    assert claim_cumulative.settled_after(never) == [5, 5]
    assert claim.CUMULATIVE.judge(data).verdict == "holds"


def test_large_beta_is_the_worst_short_length() -> None:
    config = beta.BetaConfig(lengths=(8, 32, 64))
    data = beta.BetaCurves(
        config,
        {},
        {},
        [],
        [],
        [0.1, 0.01, 0.001],
        [0.0, 0.0, 0.0],
        [0.001, 0.002, 0.01],
        [0.0001, 0.0, 0.0],
    )
    found = claim.LARGE_BETA.judge(data)
    assert number_of(found).value == pytest.approx(1.2)
    assert found.verdict == "holds with a remark"
    assert [part.label for part in found.each] == ["T = 8", "T = 32"]


def test_exponents() -> None:
    exponents = {"ML": 0.2, "estimator": 0.1, "single head": 0.03}
    data = wrong_lag.WrongLagRates(wrong_lag.WrongLagConfig(), [], {}, {}, {}, exponents, {}, {})
    assert number_of(claim.ASYMPTOTICS.judge(data)).value == pytest.approx(0.5)
    assert claim.ASYMPTOTICS.judge(data).verdict == "holds with a remark"
    assert number_of(claim.ONE_HEAD_RATE.judge(data)).value == pytest.approx(0.3)
    assert claim.ONE_HEAD_RATE.judge(data).verdict == "holds"
