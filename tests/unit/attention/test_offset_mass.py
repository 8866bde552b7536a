from __future__ import annotations

import torch

from sih.attention.offset_mass import find_period, offset_profile


def test_attention_by_offset_against_loops(rng: torch.Generator) -> None:
    attention = torch.softmax(
        torch.randn(3, 10, 10, generator=rng).masked_fill(torch.ones(10, 10).triu(1) > 0, -1e9), -1
    )
    wanted = [0.0] * 10
    for query in range(5, 10):
        for key in range(query + 1):
            wanted[query - key] += sum(attention[b, query, key].item() for b in range(3)) / 15
    assert torch.allclose(offset_profile(attention), torch.tensor(wanted), atol=1e-6)


def test_the_least_period_is_found_in_noise_and_none_where_there_is_none(
    rng: torch.Generator,
) -> None:
    o = torch.arange(60)
    noise = torch.rand(60, generator=rng, dtype=torch.float64)
    mass = torch.isin(o % 6, torch.tensor([0, 1, 4])) + 0.2 * noise
    period, residues, fit = find_period(mass / mass.sum())
    assert (period, residues) == (6, (0, 1, 4))
    expected = [[float(mass[o % 6 == r].mean())] * 10 for r in range(6)]
    left = sum((float(mass[r + 6 * n]) - expected[r][n]) ** 2 for r in range(6) for n in range(10))
    total = float(((mass - mass.mean()) ** 2).sum())
    assert abs(fit - (1 - left / total * 59 / 54)) < 1e-9
    assert find_period(torch.ones(60) / 60) == (None, (), 0.0)
    assert find_period(noise / noise.sum())[2] < 0.5
    assert find_period(1e-4 * (o % 2).double())[0] is None  # next to nothing is there
    assert find_period(torch.ones(3)) == (None, (), 0.0)
