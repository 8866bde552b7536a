from __future__ import annotations

from sih.experiments import head_counts
from sih.experiments.table import EXPERIMENTS
from sih.report.statements import OURS, PAPER, judge_all, resting_on
from sih.results.cache import Kept


def test_every_statement_rests_on_a_figure_and_has_its_own_name() -> None:
    statements = PAPER + OURS
    assert len({one.id for one in statements}) == len(statements) >= 25
    for one in statements:
        assert EXPERIMENTS[one.experiment.name] is one.experiment, one.id
        assert one.section.startswith(("Sec", "App", "beyond the paper")), one.id
        assert one.text.endswith("."), one.id
        assert one.remark.endswith(".") or not one.remark, one.id


def test_they_come_in_the_order_of_the_paper() -> None:
    places = [one.section.split(",")[0].split(";")[0].replace("Secs", "Sec") for one in PAPER]
    assert places == sorted(places, key=lambda place: (place.startswith("App"), place))


def test_without_figures_nothing_is_measured_and_each_says_why() -> None:
    for one in judge_all({}):
        assert one.verdict == "not measured"
        assert one.remark == f"figure {one.statement.experiment.name} was not made"


def test_what_rests_on_an_experiment() -> None:
    data = head_counts.HeadCounts(3, [head_counts.HeadCount(2, 3, 2, 5)], ())
    found = resting_on(Kept(head_counts.EXPERIMENT, data, {}))
    assert [one.statement.id for one in found] == ["head-range", "ours-fewer-heads"]
    nothing = resting_on(Kept(head_counts.EXPERIMENT, None, {}, missing="needs something"))
    assert {(one.verdict, one.remark) for one in nothing} == {("not measured", "needs something")}
