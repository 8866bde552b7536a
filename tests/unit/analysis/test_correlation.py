from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.oracles_attention import centred_correlation, cheapest, part_by_offset, variation, without_positions
from torch import Tensor

from sih.analysis.correlation import (
    assign,
    explained,
    mass_at,
    match_heads,
    measured,
    pair_log_probabilities,
    score_correlation,
    total_variation,
    uniform_attention,
)


def _attention(*shape: int, seed: int) -> Tensor:
    """Random causal attention; the last two sizes are query and key."""
    rng = torch.Generator().manual_seed(seed)
    scores = torch.randn(*shape, generator=rng, dtype=torch.float64)
    later = torch.ones(shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, -1e9), dim=-1)


def test_total_variation_against_the_definition() -> None:
    a, b = _attention(2, 6, 6, seed=0), _attention(2, 6, 6, seed=1)
    wanted = [[variation(a[n, i].tolist(), b[n, i].tolist()) for i in range(6)] for n in range(2)]
    torch.testing.assert_close(total_variation(a, b), torch.tensor(wanted, dtype=torch.float64))
    assert total_variation(a, a).max() == 0
    assert total_variation(torch.eye(3), torch.eye(3).roll(1, 0)).tolist() == [1, 1, 1]


@given(st.integers(1, 5), st.integers(0, 3), st.integers(0, 10_000))
def test_assignment_against_all_permutations(rows: int, more: int, seed: int) -> None:
    cost = torch.rand(rows, rows + more, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = assign(cost)
    assert len(set(found)) == rows
    assert sum(cost[r, c].item() for r, c in enumerate(found)) == pytest.approx(cheapest(cost.tolist()))


def test_assignment_wants_a_column_for_every_row() -> None:
    with pytest.raises(ValueError, match="3 rows cannot have a column of 2 each"):
        assign(torch.zeros(3, 2))
    assert assign(torch.zeros(3, 3)) == (0, 1, 2)  # the first of equals


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_heads_are_found_again_in_any_order(order: tuple[int, ...]) -> None:
    heads = _attention(3, 3, 8, 8, seed=2)
    noisy = 0.9 * heads + 0.1 * _attention(3, 3, 8, 8, seed=3)
    shuffled = noisy[:, list(order)]
    assert match_heads(shuffled, heads) == [order.index(h) for h in range(3)]


def test_with_too_few_heads_some_are_left_over() -> None:
    heads = _attention(3, 3, 8, 8, seed=2)
    assert match_heads(heads[:, [2]], heads) == [None, None, 0]
    assert match_heads(heads, heads[:, [1]]) == [1]


def test_matching_starts_at_the_first_query_asked() -> None:
    early, late = _attention(1, 2, 8, 8, seed=4), _attention(1, 2, 8, 8, seed=5)
    found, wanted = late.clone(), late.flip(1)
    found[:, :, :4], wanted[:, :, :4] = early[:, :, :4], early[:, :, :4]
    wanted[:, :, 0] = torch.tensor([0.0] * 7 + [1.0])  # nothing like it: only the later rows tell
    assert match_heads(found, wanted, first=4) == [1, 0]


@pytest.mark.parametrize("apart", [False, True])
def test_correlation_against_loops(apart: bool) -> None:
    rng = torch.Generator().manual_seed(0)
    x, y = (torch.randn(4, 6, 6, generator=rng, dtype=torch.float64) for _ in range(2))
    y = y + 0.7 * x
    keys = torch.rand(6, 6, generator=rng) < 0.6
    keys[2] = False
    allowed = [[j for j in range(6) if keys[i, j]] for i in range(6)]
    found = score_correlation(x, y, keys, apart_from_positions=apart)
    a, b = x.tolist(), y.tolist()
    if apart:
        a, b = without_positions(a, allowed), without_positions(b, allowed)
    wanted = [centred_correlation(a[n], b[n], allowed) for n in range(4)]
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64))


def test_correlation_does_not_see_what_softmax_does_not_see() -> None:
    rng = torch.Generator().manual_seed(1)
    log_p = torch.randn(3, 5, 5, generator=rng, dtype=torch.float64)
    past = torch.ones(5, 5, dtype=torch.bool).tril()
    constant = torch.randn(3, 5, 1, generator=rng, dtype=torch.float64)
    scores = (2 * log_p + constant).masked_fill(~past, -torch.inf)
    torch.testing.assert_close(score_correlation(scores, log_p, past), torch.ones(3, dtype=torch.float64))
    masked = -2 * log_p + constant + 100 * torch.randn(5, 5, generator=rng)
    assert score_correlation(masked, log_p, past).abs().max() < 0.9
    apart = score_correlation(masked, log_p, past, apart_from_positions=True)
    torch.testing.assert_close(apart, -torch.ones(3, dtype=torch.float64))


def test_explained_part_against_loops() -> None:
    rng = torch.Generator().manual_seed(2)
    past = torch.ones(7, 7, dtype=torch.bool).tril()
    keys = past & (torch.rand(7, 7, generator=rng) < 0.8)
    offset = (torch.arange(7)[:, None] - torch.arange(7)).clamp_min(0)
    x = torch.randn(3, 7, 7, generator=rng, dtype=torch.float64) + 2 * torch.randn(7, generator=rng)[offset]
    scores = x.masked_fill(~past, -torch.inf)
    allowed = [[j for j in range(7) if keys[i, j]] for i in range(7)]
    wanted = part_by_offset(x.tolist(), allowed)
    found = explained(scores, keys, "offset")
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64))
    assert 0.2 < found.min() < explained(scores, keys, "positions").min() < 1
    repeated = scores[:1].expand(3, -1, -1)
    torch.testing.assert_close(explained(repeated, keys, "positions"), torch.ones(3, dtype=torch.float64))


def test_mass_at_offsets() -> None:
    attention = _attention(2, 7, 7, seed=6)
    found = mass_at(attention, [0, 2, 5])
    for n in range(2):
        for i in range(7):
            for index, offset in enumerate((0, 2, 5)):
                wanted = attention[n, i, i - offset].item() if i >= offset else 0.0
                assert found[n, i, index].item() == wanted


def test_log_probabilities_lead_from_key_to_query() -> None:
    P = torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64)
    tokens = torch.tensor([[0, 1, 1]])
    found = pair_log_probabilities(tokens, P).exp()[0]
    assert found[1, 0].item() == pytest.approx(0.1)  # from 0, the key's token, to 1, the query's
    assert found[2, 1].item() == pytest.approx(0.6)
    with pytest.raises(ValueError, match="without zeros"):
        pair_log_probabilities(tokens, torch.eye(2, dtype=torch.float64))


def test_uniform_attention_and_standard_errors() -> None:
    assert uniform_attention(3).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3]
    mean, error = measured(torch.tensor([1.0, 2.0, 3.0, 6.0], dtype=torch.float64))
    assert mean == 3
    assert error == pytest.approx((14 / 3) ** 0.5 / 2)
