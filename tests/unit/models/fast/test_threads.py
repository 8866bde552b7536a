from __future__ import annotations

import threading

import pytest
import torch

from sih.models.fast.threads import limited_threads, map_in_threads


def test_threads_are_put_back_whatever_happens() -> None:
    with limited_threads(2):
        with pytest.raises(ZeroDivisionError), limited_threads(1):
            1 / (torch.get_num_threads() - 1)
        assert torch.get_num_threads() == 2

    @limited_threads(3)
    def inside() -> int:
        return torch.get_num_threads()

    before = torch.get_num_threads()
    assert [inside(), inside(), torch.get_num_threads()] == [3, 3, before]


def test_parts_come_back_in_order_and_each_worker_works_alone() -> None:
    def work(part: int) -> tuple[int, int, str]:
        return part, torch.get_num_threads(), threading.current_thread().name

    with limited_threads(2):
        found = list(map_in_threads(work, range(5), threads=2))
        assert torch.get_num_threads() == 2
    assert [part for part, _, _ in found] == list(range(5))
    assert {threads for _, threads, _ in found} == {1}
    assert all(name.startswith("sih-loss") for _, _, name in found)
    assert {name for _, _, name in map_in_threads(work, range(3), threads=1)} == {
        threading.current_thread().name
    }
