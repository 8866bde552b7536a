"""A verdict follows from the numbers and their intervals by the rule, and from nothing else."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sih.base.stats import wilson
from sih.results.experiment import Experiment
from sih.results.judging import (
    MATCH,
    OTHER_LENGTH,
    VERDICTS,
    Measured,
    Rule,
    ShareRule,
    Statement,
    median,
    ratio,
    share,
)
from sih.results.models import Models

ABOVE = Rule("at least", 0.9, 0.5)
FALLS = "at 20 steps, where its KL still falls"


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
        (ShareRule(), 0.8, (0.5, 0.9), "holds"),
        (ShareRule(), 1.0, (0.2, 1.0), "unsettled"),
        (ShareRule(), 0.0, (0.0, 0.79), "unsettled"),
        (ShareRule(), 0.1, (0.0, 0.4), "does not hold"),
    ],
)
def test_verdicts(
    rule: Rule, measured: float, interval: tuple[float, float] | None, verdict: str
) -> None:
    assert rule.verdict(Measured(measured, interval)) == verdict


@given(value=st.floats(-10, 10), width=st.floats(0, 5), step=st.floats(0, 5))
def test_a_worse_number_never_has_a_better_verdict(value: float, width: float, step: float) -> None:
    for rule, sign in ((MATCH, 1), (ABOVE, -1)):
        here = rule.verdict(Measured(value, (value - width, value + width)))
        worse = value + sign * step
        there = rule.verdict(Measured(worse, (worse - width, worse + width)))
        assert VERDICTS.index(there) >= VERDICTS.index(here)


def test_the_rule_says_its_limits() -> None:
    assert "at most 1.1" in str(MATCH)
    assert "at most 1.25" in str(MATCH)
    assert "at least 0.9" in str(ABOVE)
    assert "at least 0.5" in str(ShareRule())


def test_the_worst_of_several_speaks() -> None:
    found = [Measured(1.0, (0.9, 1.1), "a"), Measured(1.3, (1.2, 1.4), "b")]
    assert MATCH.worst(found).label == "b"
    assert ABOVE.worst(found).label == "a"


def test_a_finished_failure_is_worse_than_an_unfinished_one() -> None:
    unfinished, finished = Measured(1.31, None, "a", unsettled=FALLS), Measured(1.30, None, "b")
    assert MATCH.verdict(unfinished) == "unsettled"
    assert MATCH.worst([unfinished, finished]).label == "b"
    found = dataclasses.replace(SO, measure=lambda data: [unfinished, finished]).judge(0.0)
    assert (found.verdict, found.count) == ("does not hold", "0 of 2")
    assert MATCH.worst([unfinished, Measured(1.0, None, "c")]).label == "a"


def test_a_median_with_its_range() -> None:
    found = median(
        MATCH, [Measured(value, None, name) for name, value in (("a", 1.0), ("b", 3.0), ("c", 1.2))]
    )
    assert (found.value, found.interval) == (1.2, (1.0, 3.0))
    assert MATCH.verdict(found) == "holds with a remark"
    alone = Measured(1.2, (1.1, 1.3), "a")
    assert median(MATCH, [alone]) == alone


@pytest.mark.parametrize(
    ("values", "open_ended", "verdict"),
    [
        (
            (1.5, 1.6, 1.7),
            (2,),
            "does not hold",
        ),  # the two finished ones decide, whatever becomes of the third
        ((1.5, 1.6, 1.7), (1, 2), "unsettled"),
        (
            (1.0, 1.6, 1.7),
            (2,),
            "unsettled",
        ),  # at its best it would be below, and the median with it
        ((1.0, 1.0, 1.7), (2,), "holds with a remark"),
    ],
)
def test_an_unfinished_run_unsettles_only_a_median_that_it_could_turn(
    values: tuple[float, ...], open_ended: tuple[int, ...], verdict: str
) -> None:
    each = [
        Measured(v, None, model=str(n), unsettled=FALLS if n in open_ended else "")
        for n, v in enumerate(values)
    ]
    assert MATCH.verdict(median(MATCH, each)) == verdict


def test_a_share_of_runs_with_wilsons_interval() -> None:
    found = share(ShareRule(), [Measured(float(hit)) for hit in (1, 1, 0, 1)])
    assert found.value == 0.75
    assert found.interval == pytest.approx((0.301, 0.954), abs=1e-3)
    assert (found.label, "few runs (3 of 4)" in found.unsettled) == ("3 of 4", True)
    at_its_end = share(
        ShareRule(limit=wilson(3, 4)[1]), [Measured(float(hit)) for hit in (1, 1, 0, 1)]
    )
    assert "few runs (3 of 4)" in at_its_end.unsettled
    failed = [Measured(0.0) for _ in range(20)]
    assert ShareRule().verdict(share(ShareRule(), failed)) == "does not hold"
    open_ended = [dataclasses.replace(one, model="m", unsettled=FALLS) for one in failed]
    assert ShareRule().verdict(share(ShareRule(), open_ended)) == "unsettled"


def test_ratio_of_a_paired_difference() -> None:
    found = ratio((0.02, 0.0), (0.002, 0.0005), "x")
    assert found.value == pytest.approx(1.1)
    assert found.interval == pytest.approx((1.05, 1.15))
    wider = ratio((0.02, 0.01), (0.002, 0.0005), "x")
    assert wider.interval == pytest.approx((1.1 - 0.1118, 1.1 + 0.1118), abs=1e-3)


def _itself(data: float) -> list[Measured]:
    return [] if data != data else [Measured(data, None)]


NUMBER = Experiment("number", None, float, lambda config, store: 1.0)
SO = Statement("id", "Sec. 1", "it is so", NUMBER, _itself, MATCH, "× ML", "q", "But.")


def test_a_statement_has_the_keys_that_scripts_rely_on() -> None:
    good, bad = SO.judge(1.0), SO.judge(9.0)
    assert (good.verdict, bad.verdict) == ("holds", "does not hold")
    assert good.remark == bad.remark == "But."  # a remark that is written is shown
    entries = json.loads(json.dumps(good.to_dict()))
    assert list(entries)[:7] == [
        "id",
        "section",
        "statement",
        "measured",
        "interval",
        "verdict",
        "command",
    ]
    assert entries["command"] == "sih figure number --out out"
    assert (entries["measured"], entries["interval"], entries["paper_setting"]) == (1.0, None, "")
    assert SO.judge(0.0).to_dict()["measured"] == 0.0


def test_what_could_not_be_measured_says_of_whom() -> None:
    plain = dataclasses.replace(SO, models=Models("standard", "paper"))
    found = plain.judge(float("nan"))
    assert (found.verdict, found.measured, found.paper_setting) == (
        "not measured",
        None,
        "no model",
    )
    assert "standard, 3 layers, trained as in the paper" in found.remark
    assert found.to_dict()["measured"] is None


def _models(*each: tuple[float, bool]) -> Statement[float]:
    found = [
        Measured(value, None, str(n), str(n), papers_setting=at)
        for n, (value, at) in enumerate(each)
    ]
    return dataclasses.replace(SO, measure=lambda data: found, models=Models(training="paper"))


def test_models_of_other_lengths_do_not_decide_what_the_paper_says() -> None:
    for value in (1.0, 9.0):
        found = _models((value, False)).judge(0.0)
        assert (found.verdict, found.paper_setting) == (OTHER_LENGTH, "no")
        assert found.measured is not None
        assert found.measured.value == value  # the number stays
    mixed = _models((1.0, True), (9.0, False), (1.0, False)).judge(0.0)
    assert (mixed.verdict, mixed.paper_setting) == ("holds", "1 of 3")
    assert mixed.count == "2 of 3; 1 of 1 at the paper's length"
    ours = dataclasses.replace(_models((9.0, False)), models=Models(training="SOAP")).judge(0.0)
    assert (ours.verdict, ours.paper_setting) == ("does not hold", "no")


def test_a_variant_that_fails_is_a_remark() -> None:
    def judged(*each: Measured) -> tuple[str, str]:
        found = dataclasses.replace(SO, measure=lambda data: list(each)).judge(0.0)
        return found.verdict, found.count

    assert judged(Measured(1.0), Measured(1.0, variant=True)) == ("holds", "")
    assert judged(Measured(1.0), Measured(9.0, variant=True)) == ("holds with a remark", "")
    assert judged(Measured(9.0), Measured(1.0, variant=True)) == ("does not hold", "")
