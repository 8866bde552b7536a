"""Laws from known matrices, one for all sequences or one for each."""

from __future__ import annotations

import torch

import sih
from sih.task.laws import KnownRows, Laws, RowLaws, RowMemory, as_slice, has_parent, with_initial


def test_a_matrix_for_each_sequence_is_many_tasks_at_once(rng: torch.Generator) -> None:
    """The laws of a batch with its own matrices are those of each sequence alone, with roots and without."""
    P = torch.stack([sih.random_transition_matrix(3, rng=rng) for _ in range(4)])
    initial = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    table = torch.tensor([[-1, 0, 1, 1, -1, 4, 2], [-1, -1, 0, 2, 0, 0, 5]])
    tokens = torch.randint(3, (4, 6), generator=rng)
    weights = torch.rand((4, 6, 2), generator=rng, dtype=torch.float64)
    laws = RowLaws(tokens, lambda time: table[:, :time], P, initial)
    assert isinstance(laws, Laws)
    log_p, mixed = laws.log_probabilities(), laws.mixture(weights)
    for b in range(4):
        for i in range(6):
            for h in range(2):
                j = int(table[h, i])
                p = initial[tokens[b, i]] if j < 0 else P[b, tokens[b, j], tokens[b, i]]
                assert log_p[b, i, h] == (
                    p.log() if i > 0 else 0
                )  # token 0 is a root under both: it says nothing
            follows = table[:, i + 1].tolist()
            each = [initial if j < 0 else P[b, tokens[b, j]] for j in follows]
            expected = sum(
                (w * law for w, law in zip(weights[b, i], each, strict=True)),
                torch.zeros(3).double(),
            )
            assert (mixed[b, i] - expected).abs().max() < 1e-15


def test_rows_end_with_the_initial_law() -> None:
    tables = torch.tensor([[[0.9, 0.1], [0.5, 0.5]], [[0.3, 0.7], [0.2, 0.8]]])
    rows = with_initial(tables, torch.tensor([0.4, 0.6]))
    assert rows[2].tolist() == rows[5].tolist() == torch.tensor([0.4, 0.6]).tolist()
    assert torch.equal(rows[3:5], tables[1])


def test_a_known_matrix_learns_nothing() -> None:
    rows = KnownRows(torch.tensor([[0.75, 0.25], [0.5, 0.5]]))
    assert isinstance(rows, RowMemory)
    rows.learn(0, 0, 1)
    assert rows.law(0, 0) == [0.75, 0.25]
    assert rows.probability(1, 0, 1) == 0.25


def test_which_tokens_count_and_slices() -> None:
    assert has_parent(torch.tensor([[-1, -1, 1], [-1, 0, -1]])).tolist() == [False, True, True]
    assert as_slice(torch.tensor([2, 3])) == slice(2, 4)
