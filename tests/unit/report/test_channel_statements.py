"""Statements on channels, on made-up data whose answer is known."""

from dataclasses import replace

from sih.analysis.channels import Channels
from sih.experiments.channel_account import AccountConfig, Accounts, ModelAccount
from sih.experiments.channel_course import ChannelCourse, ChannelCourses, CourseConfig, CoursePoint
from sih.report.channel_statements import PLAIN_CARRIES, RECIPE_CARRIES
from sih.report.statements import MORE


def channels(carried: float, looked: float) -> Channels:
    return Channels({}, {}, {}, {"carried": (carried, 0.01), "looked": (looked, 0.01)}, {})


def accounts(**carried: float) -> Accounts:
    one = ModelAccount("standard", (1, 2, 3), (1, 3, 1), False, 9, channels(0, 1), None, {}, {})
    models = {name: replace(one, channels=channels(0.8 * share, 0.8 * (1 - share))) for name, share in carried.items()}
    plain = replace(one, plain=True, channels=channels(1, 0))
    few = replace(one, heads=(1, 1, 1), channels=channels(1, 0))
    return Accounts(AccountConfig(), {**models, "plain": plain, "few": few}, {}, [])


def courses(settled: bool, *carried: float) -> ChannelCourses:
    points = [CoursePoint(n, channels(share, 1 - share), {}, (0, 0), (0, 0)) for n, share in enumerate(carried)]
    one = ChannelCourse("mine", (1, 2, 3), (1, 3, 1), 32, True, settled, 0.01, points)
    return ChannelCourses(CourseConfig(), [one, replace(one, name="recipe's", plain=False, points=points[:1])])


def test_the_median_model_of_the_recipe_with_the_usual_heads_decides() -> None:
    found = RECIPE_CARRIES.judge(accounts(a=0.2, b=0.3, c=0.9))
    assert found.verdict == "does not hold"
    assert found.measured is not None
    assert (found.measured.value, found.measured.interval) == (0.3, (0.2, 0.9))
    assert RECIPE_CARRIES.judge(accounts(a=0.8, b=0.9)).verdict == "holds"
    assert RECIPE_CARRIES.judge(accounts()).verdict == "not measured"


def test_a_plain_run_counts_as_it_ends_and_is_unsettled_until_then() -> None:
    assert PLAIN_CARRIES.judge(courses(True, 0.1, 0.8)).verdict == "holds"
    assert PLAIN_CARRIES.judge(courses(True, 0.8, 0.6)).verdict == "holds with a remark"
    assert PLAIN_CARRIES.judge(courses(True, 0.8, 0.1)).verdict == "does not hold"
    unsettled = PLAIN_CARRIES.judge(courses(False, 0.8, 0.1))
    assert unsettled.verdict == "unsettled"
    assert "at 1 steps of mine" in unsettled.remark
    assert PLAIN_CARRIES in MORE
