"""The time left: on a clock that is played, with tasks of unequal length on several processes."""

from __future__ import annotations

import heapq
import itertools

import pytest

from sih.cli.time_left import SLOWEST, TimeLeft
from sih.report.seconds import SECONDS
from sih.report.subjects import figures


def played(
    work: dict[str, float], processes: int, pace: float, kept: int = 0
) -> list[tuple[float, float]]:
    """The seconds told and the seconds really left after each task, where each process takes the next one."""
    left, names = TimeLeft(work, processes), list(work)
    for name in names[:kept]:
        left.leave_out(name, 0.0)
    free = [0.0] * processes
    ends = []
    for name in names[kept:]:
        end = heapq.heappop(free) + pace * work[name]
        heapq.heappush(free, end)
        ends.append((end, name))
    last = max(ends)[0]
    return [(left.done(name, end), last - end) for end, name in sorted(ends)]


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_at_the_pace_that_was_measured_it_is_exact(processes: int) -> None:
    late = SLOWEST * max(SECONDS.values())  # what a task counts that is due at this moment
    for told, true in played(SECONDS, processes, 1.0):
        assert told == pytest.approx(true, abs=1e-6 if processes == 1 else late)


@pytest.mark.parametrize("pace", [0.5, 4.0])
def test_on_another_machine_it_comes_close_and_does_not_jump(pace: float) -> None:
    found = played(
        {name: SECONDS[name] for name, one in figures().items() if not one.experiment.beyond},
        2,
        pace,
    )
    whole = found[0][1]
    late = [(told, true) for told, true in found if true < 0.7 * whole]
    assert len(late) > len(found) / 2
    assert all(abs(told - true) < 0.2 * whole for told, true in late)
    steps = [(one[0] - two[0]) - (one[1] - two[1]) for one, two in itertools.pairwise(late)]
    assert max(map(abs, steps)) < 0.15 * whole  # by number it would jump by more than the whole


def test_what_was_made_before_is_no_work() -> None:
    work = dict.fromkeys("abcd", 10.0)
    left = TimeLeft(work, 1)
    assert left.leave_out("a", 0.1) == pytest.approx(30)
    assert left.leave_out("b", 0.2) == pytest.approx(20)
    assert left.done("c", 10.2) == pytest.approx(10)
    assert left.done("d", 20.2) == 0.0
    assert all(told == pytest.approx(true, abs=1e-9) for told, true in played(work, 1, 1.0, kept=2))


def test_a_long_task_at_the_end_is_waited_for() -> None:
    left = TimeLeft({"short": 1.0, "long": 100.0, "last": 1.0}, 2)
    assert left.done("short", 1.0) == pytest.approx(99)
    assert left.done("last", 2.0) == pytest.approx(98)
    late = TimeLeft({"short": 1.0, "long": 100.0}, 2)
    assert late.done("short", 1.0) == pytest.approx(99)
    assert late.done("long", 500.0) == 0.0


def test_tasks_may_end_out_of_order() -> None:
    left = TimeLeft({"a": 5.0, "b": 5.0, "c": 5.0}, 1)
    assert left.done("c", 5.0) > 0
    assert left.done("a", 10.0) > 0
    assert left.done("b", 15.0) == 0.0
