from __future__ import annotations

import pickle

import pytest
from support.findings import MORE, OURS, PAPER

from sih.paper import heads
from sih.report.subjects import (
    figure_named,
    figures,
    judge,
    judge_all,
    resting_on,
    statements,
)
from sih.results.cache import Result

EVERY = figures()


def test_an_unknown_figure_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(
        ValueError, match=r"no figure 'tezer'; did you mean teaser\? `sih figure --list`"
    ):
        figure_named("tezer", EVERY)
    assert figure_named("heads", EVERY) is EVERY["heads"]


def test_every_figure_can_go_to_another_process() -> None:
    for figure in EVERY.values():
        assert pickle.loads(pickle.dumps(figure)) == figure


def test_the_papers_come_before_ours() -> None:
    assert len(EVERY) == 38
    names = list(EVERY)
    assert names.index("teaser") < names.index("trained") < names.index("recipes")
    assert names.index("claim_cumulative_25") < names.index("channels")
    beyond = [figure.experiment.beyond for figure in EVERY.values()]
    assert beyond == sorted(beyond)


@pytest.mark.parametrize("name", EVERY)
def test_every_set_of_lags_of_a_figure_is_one(name: str) -> None:
    config = EVERY[name].experiment.config
    for lags in (
        *getattr(config, "lag_sets", ()),
        *([config.lags] if hasattr(config, "lags") else []),
    ):
        assert list(lags) == sorted(set(lags) - {0}), lags


def test_every_statement_rests_on_a_figure_and_has_its_own_name() -> None:
    experiments = [figure.experiment for figure in EVERY.values()]
    assert len(statements()) == len(PAPER) + len(OURS) + len(MORE) == 79
    for one in statements().values():
        assert one.experiment in experiments, one.id
        assert one.section.startswith(("Sec", "App", "beyond the paper")), one.id
        assert one.text.endswith("."), one.id
        assert one.remark.endswith(".") or not one.remark, one.id


def test_they_come_in_the_order_of_the_paper_ours_last() -> None:
    places = [one.section.split(",")[0].split(";")[0].replace("Secs", "Sec") for one in PAPER]
    assert places == sorted(places, key=lambda place: (place.startswith("App"), place))
    assert list(statements()) == [one.id for one in (*PAPER, *OURS, *MORE)]


def test_without_figures_nothing_is_measured_and_each_says_why() -> None:
    for one in judge_all({}, statements().values()):
        assert one.verdict == "not measured"
        assert one.remark == f"figure {one.statement.experiment.name} was not made"


def test_what_rests_on_an_experiment() -> None:
    data = heads.HeadCounts(3, (heads.HeadCount(2, 3, 2, 5),), ())
    resting = resting_on(heads.EXPERIMENT)
    assert [one.id for one in resting] == ["head-range", "ours-fewer-heads"]
    assert judge(resting[0], Result(heads.EXPERIMENT, data)).verdict == "holds"
    nothing = [judge(one, Result(heads.EXPERIMENT, None, absent=("it",))) for one in resting]
    assert {(one.verdict, one.remark) for one in nothing} == {
        ("not measured", "needs it, not trained yet")
    }
