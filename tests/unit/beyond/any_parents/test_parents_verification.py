"""Circuits for any parents are verified like those for lags, and fail with anything changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import sih
from sih.beyond.any_parents import construct_parents
from sih.task import Task

PARENTS: list[dict[str, Any]] = [{"third": "parents"}, {"third": "slots"}, {"target": "bayes"}]


@pytest.fixture(scope="module")
def table_task() -> sih.ParentsTask:
    return sih.ParentsTask(
        sih.random_transition_matrix(3, rng=0), sih.random_parents(3, 14, rng=2), 14
    )


@pytest.mark.parametrize("options", PARENTS, ids=str)
def test_a_circuit_for_parents_fails_with_anything_changed(
    options: dict[str, Any], table_task: sih.ParentsTask
) -> None:
    built = construct_parents(table_task, **options)
    assert sih.verify(built, table_task).ok
    last, second = built.config.heads[2], built.config.heads[1]
    blocks = [
        ("1.1", "token", "token"),
        ("1.1", "position", "position"),
        (f"2.{second}", "position", "position"),
    ]
    blocks += [
        (f"3.{last}", "position", "position"),
        (f"3.{last}", f"2.{second}/1.1/position", "position"),
    ]
    weights = built.state_dict()
    saved = {name: weight.clone() for name, weight in weights.items()}

    def failed(change: Any, site: str | None = None) -> bool:
        with torch.no_grad():
            change()
            found = sih.verify(built, table_task, size=4)
            built.load_state_dict(saved)
        return not found.ok and site in (None, found.worst.site)

    for block in blocks:
        assert failed(lambda block=block: built.block(*block).neg_())
    parents, mask = table_task.table[:, 13].tolist(), built.block("1.1", "position", "position")
    other = next(m for m in range(13) if m not in parents)
    columns = torch.arange(14)
    columns[[parents[0], other]] = columns[[other, parents[0]]]
    assert failed(lambda: mask[13].copy_(mask[13, columns].clone()))  # another parent
    assert failed(
        lambda: built.block(f"3.{last}", f"2.{second}/1.1/position", "position").zero_()
    )  # a head dropped
    assert failed(lambda: built.readout_block(f"3.{last}/token").neg_(), "output")
    assert failed(
        lambda: built.readout_block("3.1/token").copy_(table_task.P), "output"
    )  # transposed
    assert sih.verify(built, table_task).ok


def test_a_circuit_for_parents_is_saved_and_verified_by_its_notes(
    table_task: sih.ParentsTask, tmp_path: Path
) -> None:
    built = construct_parents(table_task, third="slots")
    sih.save(built, tmp_path / "m")
    model = sih.load(tmp_path / "m")
    assert model.circuit == built.circuit
    assert sih.verify(model) == sih.verify(built, table_task)
    other = sih.ParentsTask(table_task.P, sih.random_parents(3, 14, rng=3), 14)
    with pytest.raises(
        ValueError, match="the circuit was written for other parents than the task's"
    ):
        sih.verify(model, other)
    with pytest.raises(ValueError, match="a task of the circuit's kind, a Task; got"):
        sih.verify(sih.construct(Task(table_task.P, (1, 2), 14)), table_task)
    for claims in ({"lam": 1e30}, {"beta": 1e300}, {"temper": 1e300}):
        for weight in built.parameters():
            weight.zero_()
        built.notes["circuit"].update(claims)
        sih.save(built, tmp_path / "m")
        assert not sih.verify(sih.load(tmp_path / "m")).ok


def test_parents_where_p_has_zeros_and_roots_come_late() -> None:
    """Rows are claimed where the next token has parents, and nowhere else."""
    table = [[-1, 0, 1, -1, 2, 3, 3, 5, -1, 7], [-1, 0, 0, -1, 1, 2, 4, 4, -1, 6]]
    task = sih.ParentsTask(sih.random_sparse(4, rng=0, nonzero=2), table, 9)
    ways: list[dict[str, Any]] = [{}, {"third": "slots"}, {"target": "bayes"}]
    for options in ways:
        model = construct_parents(task, **options)
        found = sih.verify(model, task)
        assert found.ok
        assert set(found.sequences) == {"of the task", "least likely"}
        assert not model.circuit.rows[[2, 7]].any()


@pytest.mark.slow
@pytest.mark.parametrize("distinct", [True, False])
def test_parents_at_length_128(distinct: bool) -> None:
    task = sih.ParentsTask(
        sih.random_transition_matrix(5, rng=0),
        sih.random_parents(3, 128, rng=0, distinct=distinct),
        128,
    )
    model = construct_parents(task, target="bayes", symmetric=False)
    found = sih.verify(model, task, size=4)
    assert found.ok
    assert found.posterior_error is not None
    assert found.bound is not None
    assert found.posterior_error <= found.bound < 1e-4
