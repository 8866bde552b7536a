"""The remaining time of tasks of very different durations: it counts work done, not
tasks.
"""

import heapq
from collections.abc import Mapping

GUESSED = 5.0
"""Work that counts as done at one second per unit at the start, since the first tasks
alone say little about the pace."""
SLOWEST = 0.1
"""Least share of its work that an active task has left, however late it is."""


class TimeLeft:
    """Estimate of the seconds until all tasks are done, which start in order, several
    at a time.

    The pace, in seconds per unit of work, is that of the finished tasks. The rest is
    simulated at this pace: each process starts the next task as soon as it is free.
    """

    def __init__(self, work: Mapping[str, float], processes: int) -> None:
        self._work, self._processes = dict(work), processes
        self._waiting = list(work)
        self._began: dict[str, float] = {}
        self._changed = self._done = self._spent = 0.0

    def leave_out(self, name: str, now: float) -> float:
        """Count a task that was done before as no work, and return the seconds left."""
        self._waiting.remove(name)
        self._changed = now
        return self._left(now)

    def done(self, name: str, now: float) -> float:
        """Count a task as done at `now`, in seconds from the start, and return the
        seconds left.
        """
        self._begin(self._changed)
        if name in self._waiting:  # out of order
            self._waiting.remove(name)
        self._spent += now - self._began.pop(name, self._changed)
        self._done += self._work[name]
        self._changed = now
        self._begin(now)
        return self._left(now)

    def _begin(self, now: float) -> None:
        """Give each free process the next task."""
        while self._waiting and len(self._began) < self._processes:
            self._began[self._waiting.pop(0)] = now

    def _left(self, now: float) -> float:
        pace = (GUESSED + self._spent) / (GUESSED + self._done)
        free = [max(pace * self._work[name] - (now - at), SLOWEST * pace * self._work[name])
                for name, at in self._began.items()]  # fmt: skip
        free += [0.0] * (self._processes - len(free))
        heapq.heapify(free)
        for name in self._waiting:
            heapq.heapreplace(free, free[0] + pace * self._work[name])
        return max(free)
