"""Work on parts side by side, a thread a part, each of which works alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Part], Result], parts: Sequence[Part], threads: int) -> Iterator[Result]:
    """The work on each part, in order, by so many threads."""
    threads = min(threads, len(parts))
    if threads <= 1:
        yield from map(work, parts)
        return
    allowed = torch.get_num_threads()
    pool = _pool(threads)
    torch.set_num_threads(1)  # while it lasts: the libraries below torch have one setting for all threads
    try:
        yield from pool.map(work, parts)
    finally:
        torch.set_num_threads(allowed)


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "sih-loss", initializer=torch.set_num_threads, initargs=(1,))
