"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses

import pytest
from support.findings import number_of

from sih.experiments import certificates, constructions, head_counts
from sih.report import circuit_statements as circuit
from sih.results.curves import CIRCUIT, Compared, Curve, Panel


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
        certificates.CertificatesConfig(lag_sets=((1, 2), (2, 3))), [2, 2], errors
    )
    expected = {1e-13: "holds", 1e-7: "holds with a remark", 1e-3: "does not hold"}[worst]
    for judge in (circuit.ANY_LAGS, circuit.TWO_LAGS):
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
        found = circuit.PROPOSITION.judge(certificates.CertificateErrors(config, [2], [error]))
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
    minus = {
        other: {name: _curve(value - level, 1e-6) for name, value in mean.items()}
        for other, level in mean.items()
    }
    kl = {name: _curve(value) for name, value in mean.items()}
    panel = Panel((1, 3), dict.fromkeys(mean, Compared(CIRCUIT)), kl, minus)
    return constructions.ConstructionCurves(constructions.ConstructionsConfig(), [panel])


def _curve(mean: float, error: float = 0.0) -> Curve:
    return Curve(9, [], [], {}, mean, error)


def test_circuits() -> None:
    good = _curves(0.021, 0.04, 0.0215, 0.01)
    assert number_of(circuit.CONSTRUCTION_ML.judge(good)).value == pytest.approx(1.05)
    assert number_of(circuit.ONE_HEAD_KL.judge(good)).value == pytest.approx(0.04 / 0.021)
    for judge in (
        circuit.CONSTRUCTION_ML,
        circuit.ONE_HEAD_KL,
        circuit.TWO_LAGS_OPTIMAL,
        circuit.BAYES_KL,
    ):
        assert judge.judge(good).verdict == "holds"
    assert [one.variant for one in circuit.CONSTRUCTION_ML.judge(good).each] == [False, True]
    bad = _curves(0.03, 0.02, 0.04, 0.02)
    for judge in (
        circuit.CONSTRUCTION_ML,
        circuit.ONE_HEAD_KL,
        circuit.TWO_LAGS_OPTIMAL,
        circuit.BAYES_KL,
    ):
        assert judge.judge(bad).verdict == "does not hold"


def test_heads_outside_the_range_are_counted() -> None:
    inside = head_counts.HeadCounts(
        3, [head_counts.HeadCount(2, 3, 2, 5), head_counts.HeadCount(3, 3, 3, 2)], ()
    )
    assert circuit.HEAD_RANGE.judge(inside).verdict == "holds"
    assert number_of(circuit.FEWER_HEADS.judge(inside)).value == 5
    outside = head_counts.HeadCounts(
        3, [head_counts.HeadCount(2, 3, 4, 5), head_counts.HeadCount(3, 3, 2, 2)], ()
    )
    assert number_of(circuit.HEAD_RANGE.judge(outside)).value == 7
    assert circuit.HEAD_RANGE.judge(outside).verdict == "does not hold"
    assert (
        circuit.HEAD_RANGE.judge(dataclasses.replace(inside, unsettled=((1, 2),))).verdict
        == "does not hold"
    )
