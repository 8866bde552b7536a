from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from sih.results.processes import on_all_cores


def test_one_job_works_here_and_in_order() -> None:
    assert list(on_all_cores(abs, [-3, -1, -2], jobs=1)) == [3, 1, 2]
    assert list(on_all_cores(abs, [], jobs=4)) == []


@pytest.mark.slow
def test_several_jobs_are_other_processes_and_their_errors_come_home() -> None:
    assert sorted(on_all_cores(abs, [-3, -1, -2], jobs=2)) == [1, 2, 3]
    assert os.getpid() not in set(on_all_cores(_process, range(4), jobs=2))
    with pytest.raises(ZeroDivisionError):
        list(on_all_cores(partial(divmod, 1), [1, 0, 2], jobs=2))


def _process(item: int) -> int:
    return os.getpid()


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed() -> None:
    words = [sys.executable, "-c", PARENT]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert parent.stdout is not None
    workers = [int(parent.stdout.readline()) for _ in range(2)]
    parent.send_signal(signal.SIGKILL)
    parent.stdout.close()
    parent.wait()
    deadline = time.monotonic() + 30
    while (
        any(os.path.exists(f"/proc/{worker}") for worker in workers) and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    assert not [worker for worker in workers if os.path.exists(f"/proc/{worker}")]


PARENT = """
import multiprocessing, threading, time
from sih.results.processes import on_all_cores
def tell():
    while len(multiprocessing.active_children()) < 2:
        time.sleep(0.1)
    time.sleep(3)
    for child in multiprocessing.active_children():
        print(child.pid, flush=True)
if __name__ == "__main__":
    threading.Thread(target=tell, daemon=True).start()
    list(on_all_cores(time.sleep, [600, 600], jobs=2))
"""
