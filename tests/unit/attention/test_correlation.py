from __future__ import annotations

import pytest
import torch
from support.oracles_attention import centred_correlation, part_by_offset, without_positions

import sih
from sih.attention.correlation import (
    explained_variance,
    pair_log_probabilities,
    probability_correlation,
    score_correlation,
)


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
    torch.testing.assert_close(
        score_correlation(scores, log_p, past), torch.ones(3, dtype=torch.float64)
    )
    masked = -2 * log_p + constant + 100 * torch.randn(5, 5, generator=rng)
    assert score_correlation(masked, log_p, past).abs().max() < 0.9
    apart = score_correlation(masked, log_p, past, apart_from_positions=True)
    torch.testing.assert_close(apart, -torch.ones(3, dtype=torch.float64))


def test_explained_part_against_loops() -> None:
    rng = torch.Generator().manual_seed(2)
    past = torch.ones(7, 7, dtype=torch.bool).tril()
    keys = past & (torch.rand(7, 7, generator=rng) < 0.8)
    offset = (torch.arange(7)[:, None] - torch.arange(7)).clamp_min(0)
    x = (
        torch.randn(3, 7, 7, generator=rng, dtype=torch.float64)
        + 2 * torch.randn(7, generator=rng)[offset]
    )
    scores = x.masked_fill(~past, -torch.inf)
    allowed = [[j for j in range(7) if keys[i, j]] for i in range(7)]
    wanted = part_by_offset(x.tolist(), allowed)
    found = explained_variance(scores, keys, "offset")
    torch.testing.assert_close(found, torch.tensor(wanted, dtype=torch.float64))
    assert 0.2 < found.min() < explained_variance(scores, keys, "positions").min() < 1
    repeated = scores[:1].expand(3, -1, -1)
    torch.testing.assert_close(
        explained_variance(repeated, keys, "positions"), torch.ones(3, dtype=torch.float64)
    )


def test_log_probabilities_lead_from_key_to_query() -> None:
    P = torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64)
    tokens = torch.tensor([[0, 1, 1]])
    found = pair_log_probabilities(tokens, P).exp()[0]
    assert found[1, 0].item() == pytest.approx(0.1)  # from 0, the key's token, to 1, the query's
    assert found[2, 1].item() == pytest.approx(0.6)
    with pytest.raises(ValueError, match="without zeros"):
        pair_log_probabilities(tokens, torch.eye(2, dtype=torch.float64))


def test_a_head_that_pays_the_normalised_probabilities_correlates_with_them(
    task: sih.Task, rng: torch.Generator
) -> None:
    tokens = sih.sample(task, 4, rng=rng).tokens
    first = sih.construct(task).trace(tokens).attention[0][:, 0]
    assert probability_correlation(first, tokens, task) == pytest.approx(1)
    assert probability_correlation(1 - first, tokens, task) == pytest.approx(-1)
    by_hand = []
    for row, pays in zip(tokens.tolist(), first.square().tolist(), strict=True):
        for i in range(task.max_lag, len(row) - 1):
            p = [task.P[row[i - k], row[i]].item() for k in task.lags]
            by_hand += [
                (pays[i][i - k], value / sum(p)) for k, value in zip(task.lags, p, strict=True)
            ]
    wanted = torch.corrcoef(torch.tensor(by_hand, dtype=torch.float64).T)[0, 1].item()
    assert probability_correlation(first.square(), tokens, task) == pytest.approx(wanted)


def test_attention_or_probabilities_that_never_vary_correlate_with_nothing(
    task: sih.Task, rng: torch.Generator
) -> None:
    tokens = sih.sample(task, 4, rng=rng).tokens
    assert probability_correlation(torch.full((4, 32, 32), 0.25), tokens, task) == 0
    single = sih.Task(task.P, lags=(2,), length=32)
    assert probability_correlation(torch.rand(4, 32, 32, generator=rng), tokens, single) == 0
