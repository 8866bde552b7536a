"""Rotated queries and keys: lengths stay, and scores depend on the offset alone."""

from __future__ import annotations

import torch

from sih.models.relative.rotary import rotate


def test_rotation_keeps_lengths_and_depends_on_the_offset_alone() -> None:
    q, k = torch.randn(
        2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).unbind()
    turned_q, turned_k = rotate(q.expand(9, -1)), rotate(k.expand(9, -1))
    torch.testing.assert_close(turned_q.norm(dim=-1), q.norm().expand(9))
    scores = turned_q @ turned_k.T
    for offset in range(5):
        diagonal = scores.diagonal(-offset)
        torch.testing.assert_close(diagonal, diagonal[:1].expand(len(diagonal)), rtol=0, atol=1e-12)
    assert (scores[:, 0] - scores[0, 0]).abs().max() > 0.1
