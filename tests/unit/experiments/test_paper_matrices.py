"""The printed matrices are entered without slips: each is what its formula in the paper says (those of no erratum)."""

from __future__ import annotations

import torch

from sih.experiments.paper_matrices import A1_123, A2_123, BETA, LAM, printed, task


def test_signs_stand_for_the_strengths() -> None:
    assert printed("+- 01 m0").tolist() == [[LAM, -LAM], [0, BETA], [-BETA, 0]]


def test_the_examples_of_section_5_by_their_formulas() -> None:
    """A^(1): +lambda at i - j in {1, 2, 3}. A^(2,h): at (i - j) mod 3 = h - 1 for i >= j > 3. Both count from 1."""
    i, j = torch.arange(1, 11)[:, None], torch.arange(1, 11)[None, :]
    assert torch.equal(A1_123 > 0, (i - j >= 1) & (i - j <= 3))
    for head, matrix in enumerate(A2_123):
        assert torch.equal(matrix > 0, ((i - j) % 3 == head) & (i >= j) & (j > 3))


def test_the_task_to_try_them_on_is_the_same_every_time() -> None:
    assert torch.equal(task((1, 3), 12).P, task((1, 2), 40).P)
    assert (task((1, 3), 12).lags, task((1, 3), 12).length) == ((1, 3), 12)
