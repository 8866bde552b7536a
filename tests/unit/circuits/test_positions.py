"""Matrices over positions."""

from __future__ import annotations

import torch

from sih.circuits.positions import at_candidates, at_offsets, choose, gaps, rows_from, shifted


def test_weights_of_offsets_are_paid_to_their_keys() -> None:
    weights = torch.arange(1.0, 9.0, dtype=torch.float64).reshape(1, 4, 2)
    attention = at_offsets(weights, [0, 2])
    for i in range(4):
        row = [0.0] * 4
        for n, offset in enumerate((0, 2)):
            if i >= offset:
                row[i - offset] = weights[0, i, n].item()
        assert attention[0, i].tolist() == row
    assert torch.equal(at_candidates(weights, (1, 3)), attention)


def test_small_matrices() -> None:
    assert gaps(2).tolist() == [[0, -1], [1, 0]]
    chosen = choose(gaps(2) >= 0, 1 / 3, 0.1)
    assert chosen.tolist() == [[1 / 3, 0.1], [1 / 3, 1 / 3]]  # to the last digit of float64
    assert rows_from(2, torch.zeros(1, 4, dtype=torch.int64)).tolist() == [False, False, True, True]
    values = torch.tensor([[[1.0], [2.0], [3.0]]], dtype=torch.float64)
    assert shifted(values, 1).flatten().tolist() == [0.0, 1.0, 2.0]
    assert shifted(values, 5).flatten().tolist() == [0.0, 0.0, 0.0]
