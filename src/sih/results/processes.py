"""Work on several processes, one per core."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Output = TypeVar("Output")


def on_all_cores(
    work: Callable[[Item], Output], items: Sequence[Item], jobs: int | None = None
) -> Iterator[Output]:
    """Yield the result of each item as soon as it is there, from `jobs` processes
    (default: one per core).

    An early end, by a Ctrl-C or an error, also ends the processes.
    """
    jobs = processes_for(items, jobs)
    if jobs <= 1:
        yield from map(work, items)
        return
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        try:
            with ctrl_c_waits():  # and never reaches the processes, which inherit the mask
                futures = [pool.submit(work, item) for item in items]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
                child.join()
            raise


def processes_for(items: Sequence[object], jobs: int | None = None) -> int:
    """Return the number of processes: `jobs`, or one per core, and no more than items."""
    return min(jobs or cores(), len(items))


def cores() -> int:
    """Return the number of cores that this process may use; on macOS, that of the
    machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def ctrl_c_waits() -> Iterator[None]:
    """Postpone a Ctrl-C until the block ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Make a worker end with its parent, however that ends, since nobody else would
    wait for its results.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
