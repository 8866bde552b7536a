"""The seam of the task: anything with parents is sampled and predicted, whether or not they are lags."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import trees
from support.strategies import tasks_with_tokens
from support.trees import TreeTask
from torch import Tensor
from torch.utils.data import DataLoader

import sih
from sih.predictors.evidence import log_probabilities, normalised_probabilities
from sih.task import CausalTask, MatrixTask

BINARY = (-1, 0, 0, 1, 1, 2, 2, 3, 3, 4)
COMB = (-1, 0, -1, 2, -1, 4, -1, 6, -1, 8)
LATE = (-1, -1, -1, 0, 1, 2, 0, 1, 2, 0)


@pytest.fixture
def tree(rng: torch.Generator) -> TreeTask:
    P = sih.random_transition_matrix(3, rng=rng)
    return TreeTask(P, (BINARY, COMB, LATE), torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64))


def test_a_tree_and_the_paper_s_task_both_are_causal(tree: TreeTask, task: sih.Task) -> None:
    assert isinstance(tree, CausalTask)
    assert isinstance(tree, MatrixTask)
    assert isinstance(task, MatrixTask)


def test_a_tree_is_sampled_by_its_parents(tree: TreeTask) -> None:
    """Each edge's transitions, and each root's states, as often as P and pi say: |z| < 5, on a fixed seed."""
    batch = sih.sample(tree, 60_000, rng=torch.Generator().manual_seed(5))
    assert batch.tokens.shape == (60_000, 9)

    def z(events: Tensor, total: int, p: float) -> float:
        return abs(int(events.sum()) - total * p) / math.sqrt(total * p * (1 - p))

    for h, p in enumerate(tree.prior.tolist()):
        assert z(batch.lags == h, 60_000, p) < 5
        tokens = batch.tokens[batch.lags == h]
        for i, parent in enumerate(tree.table[h][:9]):
            for b in range(3):
                if parent < 0:
                    assert z(tokens[:, i] == b, len(tokens), tree.stationary[b].item()) < 5
                for a in range(3) if parent >= 0 else ():
                    before = tokens[:, parent] == a
                    assert (
                        z(before & (tokens[:, i] == b), int(before.sum()), tree.P[a, b].item()) < 5
                    )


def test_bma_on_a_tree_is_that_of_enumeration(tree: TreeTask, rng: torch.Generator) -> None:
    tokens = sih.sample(tree, 40, rng=rng).tokens
    law = sih.bma(tokens, tree)
    for b, row in enumerate(tokens.tolist()):
        for i in range(tree.length):
            expected = torch.tensor(trees.bma(row[: i + 1], tree), dtype=torch.float64)
            assert (law[b, i] - expected).abs().max() < 1e-14


@given(st.data())
def test_bma_on_any_trees(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 7))
    count = data.draw(st.integers(1, 3))
    table = tuple(
        tuple(data.draw(st.integers(-1, i - 1)) for i in range(length + 1)) for _ in range(count)
    )
    rng = torch.Generator().manual_seed(data.draw(st.integers(0, 2**32 - 1)))
    task = TreeTask(
        sih.random_transition_matrix(2, rng=rng), table, torch.full((count,), 1 / count).double()
    )
    tokens = sih.sample(task, 3, rng=rng).tokens
    law = sih.bma(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        for i in range(length):
            expected = torch.tensor(trees.bma(row[: i + 1], task), dtype=torch.float64)
            assert (law[b, i] - expected).abs().max() < 1e-13


def test_known_hypothesis_and_evidence_on_a_tree(tree: TreeTask, rng: torch.Generator) -> None:
    batch = sih.sample(tree, 20, rng=rng)
    truth = sih.known_lag(batch.tokens, batch.lags, tree)
    log_p = log_probabilities(batch.tokens, tree)
    p_norm = normalised_probabilities(batch.tokens, tree)
    for b, (row, h) in enumerate(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True)):
        for i in range(tree.length):
            follows = tree.table[h][i + 1]
            assert torch.equal(
                truth[b, i], tree.stationary if follows < 0 else tree.P[row[follows]]
            )
            if i == 0:  # a root in every tree: it says nothing
                assert log_p[b, i].tolist() == p_norm[b, i].tolist() == [0, 0, 0]
                continue
            each = [
                tree.stationary[row[i]] if t[i] < 0 else tree.P[row[t[i]], row[i]]
                for t in tree.table
            ]
            assert torch.allclose(log_p[b, i].exp(), torch.stack(each), rtol=1e-14)
            assert torch.allclose(p_norm[b, i], torch.stack(each) / sum(each), rtol=1e-13)
    assert sih.kl_to_truth(truth, batch, tree).abs().max() == 0
    assert (sih.selective(batch.tokens, tree, evidence="sum").sum(dim=-1) - 1).abs().max() < 1e-14
    assert sih.lag_accuracy(sih.lag_posterior(batch.tokens, tree), batch, tree).shape == (9,)


@given(tasks_with_tokens(zeros=True))
def test_lags_as_a_table_of_parents_are_the_paper_s_task(drawn: tuple[sih.Task, sih.Batch]) -> None:
    """The same laws and the same tokens drawn; the order of the hypotheses does not matter to the laws."""
    task, batch = drawn
    table = tuple(tuple(row) for row in task.parents(task.length + 1).tolist())
    same = TreeTask(task.P, table, task.lag_prior)
    assert (sih.bma(batch.tokens, task) - sih.bma(batch.tokens, same)).abs().max() == 0
    drawn_again = [sih.sample(t, 5, rng=torch.Generator().manual_seed(3)) for t in (task, same)]
    assert torch.equal(drawn_again[0].tokens, drawn_again[1].tokens)
    other_way = TreeTask(task.P, table[::-1], task.lag_prior.flip(0))
    assert (sih.bma(batch.tokens, task) - sih.bma(batch.tokens, other_way)).abs().max() < 1e-13


def test_a_batch_is_a_sequence_of_sequences(task: sih.Task) -> None:
    batch = sih.sample(task, 5, rng=0)
    assert len(batch) == len(list(batch)) == 5
    for index, (tokens, lag) in enumerate(batch):
        assert torch.equal(tokens, batch.tokens[index])
        assert torch.equal(batch[index].tokens, tokens)
        assert batch[index].lags == lag == batch.lags[index]
    for which in (slice(1, 3), [4, 0], torch.tensor([2]), batch.lags == batch.lags[0]):
        part = batch[which]
        assert torch.equal(part.tokens, batch.tokens[which])
        assert torch.equal(part.lags, batch.lags[which])
    assert batch.to("cpu").tokens.device == torch.device("cpu")
    assert batch.to("meta").lags.is_meta
    loaded = next(iter(DataLoader(batch, batch_size=3)))  # type: ignore[arg-type]
    assert torch.equal(loaded.tokens, batch.tokens[:3])
    assert torch.equal(loaded.lags, batch.lags[:3])
