"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from support.findings import number_of

from sih.paper import certificates, constructions
from sih.paper import heads as head_counts
from sih.paper.certificates_statements import ANY_LAGS, PROPOSITION, TWO_LAGS
from sih.paper.constructions_statements import (
    BAYES_KL,
    CONSTRUCTION_ML,
    ONE_HEAD_KL,
    TWO_LAGS_OPTIMAL,
)
from sih.paper.heads_statements import FEWER_HEADS, HEAD_RANGE
from sih.paper.over_matrices import MatricesPanel
from sih.results.curves import CIRCUIT, Compared, Curve


@pytest.mark.parametrize("worst", [1e-13, 1e-7, 1e-3])
def test_certificates(worst: float) -> None:
    names = (
        "Prop. 1, third layer by masks",
        "third layer by positions",
        "two lags, 1 head",
        certificates.POSTERIOR,
    )
    errors = [dict.fromkeys(names, 1e-14), dict.fromkeys(names, worst)]
    data = certificates.CertificateErrors(
        certificates.CertificatesConfig(lag_sets=((1, 2), (2, 3))), (2, 2), tuple(errors)
    )
    expected = {1e-13: "holds", 1e-7: "holds with a remark", 1e-3: "does not hold"}[worst]
    for judge in (ANY_LAGS, TWO_LAGS):
        found = judge.judge(data)
        assert (number_of(found).value, found.verdict) == (worst, expected)
        assert [part.label for part in found.each] == ["{1,2}", "{2,3}"]


def test_proposition_1_is_measured_with_the_sink_and_without() -> None:
    def judged(sink: float, without: float) -> tuple[float, str]:
        error = {
            certificates.PRINTED_SINK: sink,
            certificates.PRINTED: without,
            certificates.PRINTED_LATE: without,
        }
        config = certificates.CertificatesConfig(lag_sets=((1, 2),))
        found = PROPOSITION.judge(certificates.CertificateErrors(config, (2,), (error,)))
        assert "without" in found.remark
        assert len(found.each) == 3
        return number_of(found).value, found.verdict

    assert judged(1e-14, 0.998) == (1e-14, "holds with a remark")
    assert judged(1e-14, 1e-14) == (1e-14, "holds")
    assert judged(0.1, 1e-14) == (0.1, "does not hold")


def _curves(
    construction: float, one_head: float, two_lags: float, bayes: float, sink: float = 0.016
) -> constructions.ConstructionCurves:
    mean = {"BMA": 0.01, "ML": 0.02, "construction": construction, "construction, 1 head": one_head}
    mean |= {
        constructions.SINK: sink,
        "two lags, 1 head": two_lags,
        "Bayes-optimal construction": bayes,
    }
    kl = {name: _curve(value, 1e-6 * n) for n, (name, value) in enumerate(mean.items())}
    panel = MatricesPanel((1, 3), dict.fromkeys(mean, Compared(CIRCUIT)), kl, "uniform")
    return constructions.ConstructionCurves(constructions.ConstructionsConfig(), (panel,), (panel,))


def _curve(mean: float, apart: float) -> Curve:
    """Nine repetitions of this mean, at most so far apart: their differences are as small."""
    overall = mean + apart * torch.linspace(-1, 1, 9, dtype=torch.float64)
    return Curve(torch.zeros(0), torch.zeros(0), overall)


def test_circuits() -> None:
    good = _curves(0.021, 0.04, 0.0215, 0.01)
    assert number_of(CONSTRUCTION_ML.judge(good)).value == pytest.approx(1.05)
    assert number_of(ONE_HEAD_KL.judge(good)).value == pytest.approx(0.04 / 0.021)
    for judge in (
        CONSTRUCTION_ML,
        ONE_HEAD_KL,
        TWO_LAGS_OPTIMAL,
        BAYES_KL,
    ):
        assert judge.judge(good).verdict == "holds"
    assert [one.variant for one in CONSTRUCTION_ML.judge(good).each] == [False, True]
    bad = _curves(0.03, 0.02, 0.04, 0.02)
    for judge in (
        CONSTRUCTION_ML,
        ONE_HEAD_KL,
        TWO_LAGS_OPTIMAL,
        BAYES_KL,
    ):
        assert judge.judge(bad).verdict == "does not hold"


def test_heads_outside_the_range_are_counted() -> None:
    inside = head_counts.HeadCounts(
        3, (head_counts.HeadCount(2, 3, 2, 5), head_counts.HeadCount(3, 3, 3, 2)), ()
    )
    assert HEAD_RANGE.judge(inside).verdict == "holds"
    assert number_of(FEWER_HEADS.judge(inside)).value == 5
    outside = head_counts.HeadCounts(
        3, (head_counts.HeadCount(2, 3, 4, 5), head_counts.HeadCount(3, 3, 2, 2)), ()
    )
    assert number_of(HEAD_RANGE.judge(outside)).value == 7
    assert HEAD_RANGE.judge(outside).verdict == "does not hold"
    assert (
        HEAD_RANGE.judge(dataclasses.replace(inside, unsettled=((1, 2),))).verdict
        == "does not hold"
    )
