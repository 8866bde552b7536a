"""Number of torch's threads, and work on parts in parallel."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Set torch's number of threads within the block, then restore it.

    It is also a decorator.
    """
    allowed = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(allowed)


def map_in_threads(
    work: Callable[[Part], Result], parts: Sequence[Part], threads: int
) -> Iterator[Result]:
    """Yield the result of the work on each part, in order, from this number of threads.

    Each thread works alone.
    """
    threads = min(threads, len(parts))
    if threads <= 1:
        yield from map(work, parts)
        return
    pool = _pool(threads)
    with limited_threads(1):  # the libraries below torch have one setting for all threads
        yield from pool.map(work, parts)


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "sih-loss", initializer=torch.set_num_threads, initargs=(1,))
