from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.attention import causal_attention
from support.oracles_attention import cheapest, variation

from sih.attention.head_matching import match_heads, total_variation, uniform_attention


def test_total_variation_against_the_definition() -> None:
    a, b = causal_attention(2, 6, 6, seed=0), causal_attention(2, 6, 6, seed=1)
    wanted = [[variation(a[n, i].tolist(), b[n, i].tolist()) for i in range(6)] for n in range(2)]
    torch.testing.assert_close(total_variation(a, b), torch.tensor(wanted, dtype=torch.float64))
    assert total_variation(a, a).max() == 0
    assert total_variation(torch.eye(3), torch.eye(3).roll(1, 0)).tolist() == [1, 1, 1]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10_000))
def test_the_assignment_is_the_cheapest_of_all(found: int, wanted: int, seed: int) -> None:
    heads = causal_attention(2, found + wanted, 5, 5, seed=seed)
    a, b = heads[:, :found], heads[:, found:]
    partners = match_heads(a, b)
    chosen = [partner for partner in partners if partner is not None]
    assert len(set(chosen)) == len(chosen) == min(found, wanted)
    cost = [
        [total_variation(a[:, i], b[:, j]).mean().item() for i in range(found)]
        for j in range(wanted)
    ]
    paid = sum(cost[j][partner] for j, partner in enumerate(partners) if partner is not None)
    rows = cost if wanted <= found else [list(column) for column in zip(*cost, strict=True)]
    assert paid == pytest.approx(cheapest(rows))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_heads_are_found_again_in_any_order(order: tuple[int, ...]) -> None:
    heads = causal_attention(3, 3, 8, 8, seed=2)
    noisy = 0.9 * heads + 0.1 * causal_attention(3, 3, 8, 8, seed=3)
    shuffled = noisy[:, list(order)]
    assert match_heads(shuffled, heads) == [order.index(h) for h in range(3)]


def test_with_too_few_heads_some_are_left_over() -> None:
    heads = causal_attention(3, 3, 8, 8, seed=2)
    assert match_heads(heads[:, [2]], heads) == [None, None, 0]
    assert match_heads(heads, heads[:, [1]]) == [1]


def test_matching_starts_at_the_first_query_asked() -> None:
    early, late = causal_attention(1, 2, 8, 8, seed=4), causal_attention(1, 2, 8, 8, seed=5)
    found, wanted = late.clone(), late.flip(1)
    found[:, :, :4], wanted[:, :, :4] = early[:, :, :4], early[:, :, :4]
    wanted[:, :, 0] = torch.tensor([0.0] * 7 + [1.0])  # nothing like it: only the later rows tell
    assert match_heads(found, wanted, first=4) == [1, 0]


def test_uniform_attention() -> None:
    assert uniform_attention(3).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3]
