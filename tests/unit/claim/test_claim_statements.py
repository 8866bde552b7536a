"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from support.findings import number_of

from sih.claim import beta, claim_cumulative, claim_expectations, claim_histogram, wrong_lag
from sih.claim.beta_statements import LARGE_BETA
from sih.claim.claim_cumulative_statements import CUMULATIVE
from sih.claim.claim_expectations_statements import CLAIM, CLAIM_25
from sih.claim.monte_carlo import PAPER_LAGS
from sih.claim.wrong_lag_statements import ASYMPTOTICS, ONE_HEAD_RATE


@pytest.mark.parametrize(("gap", "verdict"), [(0.01, "holds"), (-0.01, "does not hold")])
def test_claim(gap: float, verdict: str) -> None:
    margins = torch.tensor([[0.1, 0.2], [gap, 0.3]], dtype=torch.float64)
    found = CLAIM.judge(claim_histogram.ClaimMargins(3, (1, 2), margins, 1e-11))
    assert (number_of(found).value, found.verdict) == (gap, verdict)
    assert number_of(found).label.endswith("2 of 2 pairs of true lag and rival are theorems")
    bars = claim_expectations.ExpectationBars(
        3, 2, (1, 2), torch.zeros(2, 2), torch.zeros(2, 2), margins, 1e-11
    )
    assert CLAIM_25.judge(bars).verdict == verdict


def test_how_much_of_the_claim_is_a_theorem() -> None:
    found = CLAIM.judge(
        claim_histogram.ClaimMargins(10, PAPER_LAGS, torch.full((1, 12), 0.1), 1e-11)
    )
    assert number_of(found).label == (
        "12 of 12 gaps are positive; 101 of 132 pairs of true lag and rival are theorems"
    )


def test_a_gap_within_the_error_is_no_proof() -> None:
    found = CLAIM.judge(
        claim_histogram.ClaimMargins(3, (1, 2), torch.tensor([[1e-12, 0.2]]), 1e-11)
    )
    assert found.verdict == "holds with a remark"
    assert number_of(found).interval == pytest.approx((1e-12 - 2e-11, 1e-12 + 2e-11), rel=1e-6)


def test_a_gap_of_nothing_is_not_positive() -> None:
    margins = torch.tensor([[0.0, 0.2], [0.1, -0.1]])
    found = CLAIM.judge(claim_histogram.ClaimMargins(3, (1, 2), margins, 1e-11))
    assert number_of(found).label.startswith("2 of 4 gaps are positive; ")


def test_cumulative_averages_are_followed_to_the_end() -> None:
    own, other = [0.5, 0.4, 0.6, 0.7], [0.4, 0.5, 0.4, 0.3]

    def paths(*average: list[list[float]]) -> claim_cumulative.CumulativePaths:
        limit = torch.tensor([[0.7, 0.3], [0.3, 0.7]])
        return claim_cumulative.CumulativePaths((1, 2), torch.tensor(average), limit)

    data = paths([own, other], [other, own])
    assert claim_cumulative.settled_after(data) == [3, 3]
    always = paths([[0.9], [0.1]], [[0.1], [0.9]])
    assert claim_cumulative.settled_after(always) == [1, 1]
    never = paths([other, own], [own, other])
    assert claim_cumulative.settled_after(never) == [5, 5]
    assert CUMULATIVE.judge(data).verdict == "holds"


def test_large_beta_is_the_worst_short_length() -> None:
    config = beta.BetaConfig(lengths=(8, 32, 64))
    found = beta.BetaOfLaw(
        {},
        {},
        limit=torch.zeros(3),
        bma=torch.zeros(3),
        ml=torch.tensor([0.1, 0.01, 0.001], dtype=torch.float64),
        ml_error=torch.zeros(3),
        minus_ml=torch.tensor([0.001, 0.002, 0.01], dtype=torch.float64),
        minus_ml_error=torch.tensor([0.0001, 0.0, 0.0]),
    )
    nearer = dataclasses.replace(found, minus_ml=found.minus_ml / 2)
    judged = LARGE_BETA.judge(beta.BetaCurves(config, {"uniform": nearer, "dirichlet": found}))
    assert number_of(judged).value == pytest.approx(1.2)
    assert judged.verdict == "holds with a remark"
    assert [part.label for part in judged.each] == [
        "T = 8, uniform rows",
        "T = 32, uniform rows",
        "T = 8, Dirichlet(1) rows",
        "T = 32, Dirichlet(1) rows",
    ]


def test_exponents() -> None:
    exponents = {"ML": 0.2, "estimator": 0.1, "single head": 0.03}
    data = wrong_lag.WrongLagRates(
        wrong_lag.WrongLagConfig(), torch.zeros(0).long(), {}, {}, {}, exponents, {}, {}
    )
    assert number_of(ASYMPTOTICS.judge(data)).value == pytest.approx(0.5)
    assert ASYMPTOTICS.judge(data).verdict == "holds with a remark"
    assert number_of(ONE_HEAD_RATE.judge(data)).value == pytest.approx(0.3)
    assert ONE_HEAD_RATE.judge(data).verdict == "holds"
