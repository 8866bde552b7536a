"""A verdict follows from the number and its interval by the rule, and from nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sih.experiments.experiment import Experiment
from sih.report.rules import (
    MATCH,
    VERDICTS,
    Measured,
    NotMeasuredError,
    Rule,
    Statement,
    median_and_range,
    ratio,
    require,
)

ABOVE = Rule("at least", 0.9, 0.5)


@pytest.mark.parametrize(
    ("rule", "measured", "interval", "verdict"),
    [
        (MATCH, 1.0, (0.9, 1.1), "holds"),
        (MATCH, 1.0, (0.9, 1.11), "holds with a remark"),
        (MATCH, 1.0, None, "holds"),
        (MATCH, 1.25, (1.2, 1.3), "holds with a remark"),
        (MATCH, 1.26, (1.0, 1.5), "does not hold"),
        (MATCH, float("nan"), None, "does not hold"),
        (ABOVE, 0.95, (0.9, 1.0), "holds"),
        (ABOVE, 0.95, (0.89, 1.0), "holds with a remark"),
        (ABOVE, 0.5, (0.4, 0.6), "holds with a remark"),
        (ABOVE, 0.49, (0.4, 0.95), "does not hold"),
    ],
)
def test_verdicts(rule: Rule, measured: float, interval: tuple[float, float] | None, verdict: str) -> None:
    assert rule.verdict(measured, interval) == verdict


@given(value=st.floats(-10, 10), width=st.floats(0, 5), step=st.floats(0, 5))
def test_a_worse_number_never_has_a_better_verdict(value: float, width: float, step: float) -> None:
    for rule, sign in ((MATCH, 1), (ABOVE, -1)):
        here = rule.verdict(value, (value - width, value + width))
        there = rule.verdict(value + sign * step, (value + sign * step - width, value + sign * step + width))
        assert VERDICTS.index(there) >= VERDICTS.index(here)


def test_the_rule_says_its_limits() -> None:
    assert "at most 1.1" in str(MATCH)
    assert "at most 1.25" in str(MATCH)
    assert "at least 0.9" in str(ABOVE)


def test_the_worst_of_several_speaks() -> None:
    found = [Measured(1.0, (0.9, 1.1), "a", models=("m",)), Measured(1.3, (1.2, 1.4), "b", models=("n", "m"))]
    worst = MATCH.worst(found)
    assert (worst.value, worst.interval, worst.label) == (1.3, (1.2, 1.4), "b")
    assert worst.parts == tuple(found)
    assert worst.models == ("m", "n")
    assert ABOVE.worst(found).value == 1.0


def test_several_models_are_a_median_and_a_range() -> None:
    found = [Measured(value, None, name, models=(name,)) for name, value in (("a", 1.0), ("b", 3.0), ("c", 1.2))]
    several = median_and_range(found)
    assert (several.value, several.interval) == (1.2, (1.0, 3.0))
    assert [part.label for part in several.parts] == ["a", "c", "b"]
    assert MATCH.verdict(several.value, several.interval) == "holds with a remark"


def test_ratio_of_a_paired_difference() -> None:
    found = ratio(0.02, (0.002, 0.0005), "x")
    assert found.value == pytest.approx(1.1)
    assert found.interval == pytest.approx((1.05, 1.15))


def _itself(data: float) -> Measured:
    if data != data:
        raise NotMeasuredError("the model is not there")
    return Measured(data, None)


NUMBER = Experiment("number", "a number", None, float, lambda config, store: 1.0)
SO = Statement("id", "Sec. 1", "it is so", NUMBER, _itself, MATCH, "× ML", "q", "but")


def test_a_statement_has_the_keys_that_scripts_rely_on() -> None:
    good, bad = SO.judge(1.0), SO.judge(9.0)
    assert (good.verdict, good.remark) == ("holds", "")
    assert (bad.verdict, bad.remark) == ("does not hold", "but")
    entries = json.loads(json.dumps(good.to_dict()))
    assert list(entries)[:7] == ["id", "section", "statement", "measured", "interval", "verdict", "command"]
    assert entries["command"] == "sih figure number --out out"
    assert (entries["measured"], entries["interval"], entries["parts"]) == (1.0, None, [])
    assert SO.judge(0.0).to_dict()["measured"] == 0.0


def test_what_could_not_be_measured_says_why() -> None:
    found = SO.judge(float("nan"))
    assert (found.verdict, found.measured, found.remark) == ("not measured", None, "the model is not there")
    assert found.to_dict()["measured"] is None
    with pytest.raises(NotMeasuredError, match="none"):
        require([], "none")
