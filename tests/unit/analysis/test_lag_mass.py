from __future__ import annotations

import torch

import sih
from sih.analysis.lag_mass import find_period, mass_by_offset, masses_by_offset


def test_attention_by_offset_against_loops(rng: torch.Generator) -> None:
    attention = torch.softmax(
        torch.randn(3, 10, 10, generator=rng).masked_fill(torch.ones(10, 10).triu(1) > 0, -1e9), -1
    )
    found = mass_by_offset(attention, 3, near=4)
    wanted, offsets, distant = [0.0] * 3, [0.0] * 4, 0.0
    for query in range(5, 10):
        for key in range(query + 1):
            mass = sum(attention[b, query, key].item() for b in range(3)) / 15
            wanted[(query - key) % 3] += mass
            if query - key < 4:
                offsets[query - key] += mass
            if query - key >= 2:
                distant += mass
    assert torch.allclose(found.residues, torch.tensor(wanted), atol=1e-6)
    assert torch.allclose(found.offsets, torch.tensor(offsets), atol=1e-6)
    assert abs(found.far - distant) < 1e-6


def test_a_head_written_by_hand_is_seen_for_what_it_is(rng: torch.Generator) -> None:
    """Layer 1 attends to the lags, layer 2's heads to the residues."""
    model = sih.DisentangledTransformer(num_states=3, length=12, heads=(1, 2), init="zeros")
    i = torch.arange(12)
    offset = i[:, None] - i
    with torch.no_grad():
        model.block("1.1", "position", "position").copy_(100 * ((offset == 1) | (offset == 2)))
        for head in (1, 2):
            model.block(f"2.{head}", "position", "position").copy_(100 * (offset % 2 == head - 1))
        attention = model.trace(torch.randint(3, (4, 12), generator=rng)).attention
    first, even, odd = masses_by_offset(attention, period=2)
    assert torch.allclose(first.offsets[1:3].sum(), torch.tensor(1.0))
    assert even.residues[0] > 0.999
    assert odd.residues[1] > 0.999
    assert even.far > 0.4
    assert "head 2.2" in str(odd)


def test_the_least_period_is_found_in_noise_and_none_where_there_is_none(rng: torch.Generator) -> None:
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
