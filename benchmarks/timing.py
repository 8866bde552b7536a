"""Timing things side by side: rounds of all of them in turn, medians, threads fixed.

Times are by the clock; with one thread, `time.process_time` as `clock` counts the processor's time instead, which other
work on the machine hardly changes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

Clock = Callable[[], float]


def in_turn(
    calls: dict[str, Callable[[], object]], rounds: int = 7, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each call in each of `rounds` rounds, in turn, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            begin = clock()
            call()
            if round_:
                times[name].append(clock() - begin)
    return times


def medians(
    calls: dict[str, Callable[[], object]], rounds: int = 7, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each call, taken in turn."""
    return {name: statistics.median(found) for name, found in in_turn(calls, rounds, clock).items()}


def ratio(slow: list[float], fast: list[float]) -> float:
    """The median of the ratios round by round: what slows a whole round down cancels."""
    return statistics.median(one / other for one, other in zip(slow, fast, strict=True))


def machine() -> str:
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, CPU"
