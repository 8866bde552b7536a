"""Work spread over processes, one for each core."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_all_cores(work: Callable[[Item], Result], items: Sequence[Item], jobs: int | None = None) -> Iterator[Result]:
    """Yield the result of each item as soon as it is there, from `jobs` processes (as many as cores unless said).

    Whatever ends it early, a Ctrl-C or an error, ends the processes too.
    """
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(items))
    if jobs <= 1:
        yield from map(work, items)
        return
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        try:
            for future in as_completed([pool.submit(work, item) for item in items]):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
                child.join()
            raise


def _begin_worker() -> None:
    """Let only the parent hear Ctrl-C, which reaches all processes of a terminal, and end its workers then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
