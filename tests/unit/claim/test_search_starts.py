from __future__ import annotations

import pytest
import torch

import sih
from sih.claim.search_starts import FAMILIES, LOGIT_BOUND, STARTS, starting_logits


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", STARTS)
@pytest.mark.parametrize("states", [2, 7])
def test_matrices_are_transition_matrices_of_their_family(
    kind: str, family: str, states: int, rng: torch.Generator
) -> None:
    logits = starting_logits(kind, 5, states, rng)
    assert logits.shape == (5, states, states)
    assert logits.abs().max() <= LOGIT_BOUND
    P = FAMILIES[family](logits)
    assert P.min() >= 0
    torch.testing.assert_close(P.sum(dim=-1), torch.ones(5, states, dtype=torch.float64))
    if family == "symmetric":
        torch.testing.assert_close(P, P.mT)
    if family == "reversible":
        flow = sih.stationary_distribution(P)[..., None] * P
        torch.testing.assert_close(flow, flow.mT, rtol=0, atol=1e-12)


def test_families_have_gradients(rng: torch.Generator) -> None:
    for matrices in FAMILIES.values():
        logits = starting_logits("random", 2, 4, rng).requires_grad_()
        matrices(logits).square().sum().backward()
        assert logits.grad is not None
        assert logits.grad.abs().max() > 0


def test_a_rotation_turns(rng: torch.Generator) -> None:
    """Some of many starts have a current round the circle."""
    P = FAMILIES["any"](starting_logits("rotation", 40, 6, rng))
    flow = sih.stationary_distribution(P)[..., None] * P
    assert (flow - flow.mT).abs().amax(dim=(-2, -1)).max() > 0.05


def test_a_tree_has_neighbours_and_blocks_follow_each_other(rng: torch.Generator) -> None:
    P = FAMILIES["any"](starting_logits("tree", 20, 9, rng))
    likely = (P > 2 / 9).sum(dim=(-2, -1))  # about twice the number of edges, 8
    assert likely.min() >= 8
    assert likely.max() <= 24
    blocks = FAMILIES["any"](starting_logits("blocks", 60, 12, rng))
    parity = torch.arange(12) % 2
    other = (blocks * (parity[:, None] != parity)).sum(dim=-1).mean(dim=-1)
    assert other.max() > 0.9
