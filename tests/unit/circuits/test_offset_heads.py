"""Second-layer heads that share out the past, against counts in loops."""

from __future__ import annotations

import pytest
import torch

from sih.base.errors import FieldError
from sih.circuits.offset_heads import Evidence, OffsetHeads, one_residue_each

PATTERN, LENGTH, MAX_LAG = (0, 1, 0, -1), 15, 4


def seen(i: int, head: int) -> int:
    return sum(PATTERN[o % 4] == head for o in range(i - MAX_LAG + 1))


WAYS: list[tuple[Evidence, bool]] = [("mean", False), ("mean", True), ("sum", True)]


@pytest.mark.parametrize(("evidence", "sink"), WAYS)
def test_a_transition_counts_as_the_table_says(evidence: Evidence, sink: bool) -> None:
    heads = OffsetHeads(PATTERN, LENGTH, MAX_LAG, evidence, sink)
    attention, factors, beta = heads.attention(), heads.factors(2.0), 2.0
    assert heads.count == 2
    for i in range(7, LENGTH):
        counts = [seen(i, 0), seen(i, 1)]
        assert heads.transitions()[i].tolist() == counts
        for head in range(2):
            share = [2, 1][head] * 2 / 3
            weight = {
                ("mean", False): beta * share / counts[head],
                ("mean", True): beta / sum(counts),
                ("sum", True): beta,
            }[evidence, sink]
            for o in range(i - MAX_LAG + 1):
                counted = factors[head] * attention[head, i, i - o].item()
                assert counted == pytest.approx(weight if PATTERN[o % 4] == head else 0.0)
            if sink:
                assert attention[head, i].sum().item() == pytest.approx(1)
                assert attention[head, i, 0].item() == pytest.approx(heads.at_sink()[i, head])


def test_sums_are_those_of_the_offsets_of_each_head() -> None:
    heads = OffsetHeads(PATTERN, LENGTH, MAX_LAG, "sum", True)
    p = torch.rand(2, LENGTH, 3, generator=torch.Generator().manual_seed(0)).double()
    p[:, :MAX_LAG] = 0
    for head, found in enumerate(heads.sums(p)):
        for i in range(LENGTH):
            wanted = sum((p[:, i - o] for o in range(i + 1) if PATTERN[o % 4] == head), p[:, 0])
            assert (found[:, i] - wanted).abs().max() < 1e-12


def test_heads_without_an_offset_are_refused() -> None:
    with pytest.raises(FieldError, match="a head for one offset"):
        OffsetHeads((-1, -1), LENGTH, MAX_LAG, "mean", sink=False)


def test_one_residue_each() -> None:
    assert one_residue_each((0, 1, -1))
    assert not one_residue_each((0, 1, 0))
