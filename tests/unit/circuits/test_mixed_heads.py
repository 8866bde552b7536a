"""Second-layer heads in which lags mix."""

from __future__ import annotations

import pytest
import torch

import sih
from sih.circuits.mixed_heads import MixedHeads

LENGTH, MAX_LAG = 20, 3
HEADS = MixedHeads(sih.two_sided((1, 2, 3), LENGTH, 2))


def test_an_offset_has_its_weight_in_every_row_and_the_sink_the_rest() -> None:
    attention, profile = HEADS.attention(), HEADS.profile
    assert attention.shape == (HEADS.count, LENGTH, LENGTH) == (2, LENGTH, LENGTH)
    assert (attention.sum(dim=-1) - 1).abs().max() < 1e-12
    for head, i in ((0, 5), (1, 19)):
        for o in range(i - MAX_LAG + 1):
            wanted = profile.weights[head, o] / profile.totals[head]
            assert attention[head, i, i - o].item() == pytest.approx(wanted.item())
        assert attention[head, i, 1:MAX_LAG].abs().max() == 0


def test_scores_are_sums_with_the_profiles_matrices() -> None:
    p = torch.rand(1, LENGTH, 3, generator=torch.Generator().manual_seed(0)).double()
    p = p / p.sum(dim=-1, keepdim=True)
    p[:, :MAX_LAG] = 0
    J = torch.eye(3, dtype=torch.float64) - 1 / 3
    found = HEADS.scores(p, beta=2.0)
    for i in range(LENGTH):
        wanted = torch.zeros(3, dtype=torch.float64)
        for o in range(i - MAX_LAG + 1):
            wanted += 2.0 * J @ HEADS.profile.matrices[o] @ J @ p[0, i - o]
        assert (J @ found[0, i] - wanted).abs().max() < 1e-9


def test_longer_sequences_than_the_profile_is_for_are_refused() -> None:
    with pytest.raises(ValueError, match="weights are for 20 tokens; got 21"):
        HEADS.scores(torch.zeros(1, 21, 3, dtype=torch.float64), 1.0)
