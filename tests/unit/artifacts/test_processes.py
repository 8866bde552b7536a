from __future__ import annotations

import os
from functools import partial

import pytest

from sih.artifacts.processes import on_all_cores


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
