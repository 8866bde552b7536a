"""Masks: only their difference counts, 2 lam."""

from __future__ import annotations

import pytest
import torch

from sih.circuits.masks import STRONG, Masks


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("lam", [0.5, 500.0, 2 * STRONG])
def test_a_mask_multiplies_a_weight_by_the_same_in_either_form(lam: float, apart: bool) -> None:
    allow, forbid = Masks.of(lam, apart=apart)
    assert allow - forbid == 2 * lam
    scores = torch.tensor([allow, forbid], dtype=torch.float64)
    weights = torch.softmax(scores, dim=0)
    assert (weights[1] / weights[0]).item() == pytest.approx(torch.tensor(-2 * lam).exp().item())


def test_masks_that_would_take_digits_add_nothing_to_what_is_allowed() -> None:
    assert Masks.of(500.0, apart=False) == (500.0, -500.0)
    assert Masks.of(500.0, apart=True) == (0.0, -1000.0)
    assert Masks.of(2 * STRONG, apart=False) == (0.0, -4 * STRONG)
