"""Timing things side by side: rounds of all of them in turn, medians, threads fixed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch


def medians(calls: dict[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each call over `rounds` rounds, in turn, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(rounds + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if round_:
                times[name].append(time.perf_counter() - begin)
    return {name: statistics.median(found) for name, found in times.items()}


def machine() -> str:
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, CPU"
