"""Heads for tables of parents: the definition by loops, the least number by enumeration, lags as a special case."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import assume, example, given
from support.oracles_parents import clash
from support.strategies import parent_tables as tables

import sih
from sih.beyond.any_parents.tables import shared_parent
from sih.beyond.any_parents.token_heads import TokenHeads, pair_heads, token_heads
from sih.heads.independent_check import _needs
from sih.heads.least import LowerBoundProof

P2 = [[0.9, 0.1], [0.5, 0.5]]


def verify_token_heads(parents: Sequence[Sequence[int]], found: TokenHeads) -> bool:
    """Whether tokens of one head never mix, all that say something have one, and `found.lower` heads are needed.

    Two tokens mix if some position is the parent of one under other hypotheses than of the other.
    """
    under = [
        {
            m: {h for h, row in enumerate(parents) if row[n] == m}
            for m in {row[n] for row in parents}
            if m >= 0
        }
        for n in range(len(parents[0]))
    ]

    def mix(n: int, other: int) -> bool:
        return any(
            under[other][m] != hypotheses for m, hypotheses in under[n].items() if m in under[other]
        )

    speak = [
        n for n in range(len(under)) if len(under[n]) > 1 and all(row[n] >= 0 for row in parents)
    ]
    right = [n for n, head in enumerate(found.colours) if head >= 0] == speak and not any(
        mix(n, other) for n in speak for other in speak if found.colours[n] == found.colours[other]
    )
    points = found.certificate.points
    graph = {n: {other for other in points if mix(n, other)} for n in points}
    return right and set(points) <= set(speak) and (not speak or _needs(graph, found.certificate))


@given(tables(9))
def test_tokens_of_one_head_do_not_clash_and_no_fewer_heads_do(table: list[list[int]]) -> None:
    found = token_heads(torch.tensor(table))
    speak = [n for n in range(len(table[0])) if len({row[n] for row in table}) > 1]
    assert [n for n, head in enumerate(found.colours) if head >= 0] == speak
    for n, other in itertools.combinations(speak, 2):
        assert found.colours[n] != found.colours[other] or not clash(table, n, other)
    assert found.exact
    fewer = itertools.product(range(found.heads - 1), repeat=len(speak))
    assert not any(
        all(
            a != b or not clash(table, n, m)
            for (n, a), (m, b) in itertools.combinations(zip(speak, c, strict=True), 2)
        )
        for c in (fewer if found.heads else ())
        if len(speak) <= 7
    )
    assert verify_token_heads(table, found)


def test_the_independent_check_sees_what_is_wrong() -> None:
    table = sih.random_parents(3, 24, rng=0)
    found = token_heads(table)
    assert verify_token_heads(table.tolist(), found)
    worse = list(found.colours)
    worse[worse.index(1)] = 0
    merged = [0 if head == 1 else head for head in found.colours]
    for colours in (merged, [-1, *worse[1:-1], -1]):
        assert not verify_token_heads(table.tolist(), replace(found, colours=tuple(colours)))
    points = found.certificate.points
    for proof in (
        LowerBoundProof("clique", found.heads + 1, points),
        LowerBoundProof("exhaustion", 9, points[:2]),
    ):
        assert not verify_token_heads(table.tolist(), replace(found, certificate=proof))


@pytest.mark.parametrize("lags", [(1, 2), (1, 2, 3), (1, 3, 4), (2, 5), (1, 2, 4)])
def test_lags_need_as_many_heads_as_by_their_offsets(lags: tuple[int, ...]) -> None:
    table, least = sih.Task(P2, lags, 40).parents(41), sih.least_heads(lags)
    assert token_heads(table).heads == token_heads(table).lower == least.heads
    pairs = torch.tensor(pair_heads(table))
    assert int(pairs.max()) + 1 == least.heads


@given(tables(8))
@example([[-1, 0, 1, 2, 0, 1, 2, 6], [-1, 0, 1, 2, 2, 4, 1, 4], [-1, 0, 0, 2, 3, 2, 0, 2]])
def test_pairs_of_one_head_ask_for_the_same_reads(table: list[list[int]]) -> None:
    length = len(table[0]) - 1
    assume(shared_parent(sih.ParentsTask(P2, table, length)) is None)
    heads = pair_heads(torch.tensor(table))
    reads: dict[tuple[int, int, int], tuple[bool, int]] = {}
    for i, n in itertools.product(range(length), repeat=2):
        keys, at = [row[i + 1] for row in table], [row[n] for row in table]
        wanted = n <= i and min(keys + at) >= 0 and len(set(at)) > 1 and len(set(keys)) > 1
        assert (heads[i][n] >= 0) == wanted
        for (h, key), m in itertools.product(enumerate(keys), at if wanted else ()):
            asked = (at[h] == m, at.count(m))
            held = reads.setdefault((heads[i][n], m, key), asked)
            assert held[0] == asked[0]
            assert held[1] == asked[1] or not asked[0]


def test_children_of_one_parent_share_a_head_and_silent_tokens_have_none() -> None:
    star = torch.tensor([[-1, 0, 0, 0, 0, 0, 0], [-1, 0, 1, 1, 1, 1, 1]])
    assert token_heads(star).colours == (
        -1,
        -1,
        0,
        0,
        0,
        0,
        0,
    )  # siblings under both: one head at any length
    assert token_heads(torch.tensor([[-1, 0, 0, 1]] * 3)).colours == (-1, -1, -1, -1)


def test_two_hypotheses_need_two_heads_at_most_where_they_may_mix() -> None:
    """One head for tokens whose first parent is the later one, one for the others (docs/concepts).

    A token has the weight 1 / distance of its parents, and index m is read by m: up to a number that depends on
    positions alone, the heads' difference is the evidence for the first hypothesis.
    """
    table, rng = sih.random_parents(2, 60, rng=3, distinct=False), torch.Generator().manual_seed(0)
    assert token_heads(table[:, :-1]).heads > 2
    first, second = table[0].tolist(), table[1].tolist()
    offs = []
    for _ in range(3):
        share = torch.rand(
            60, generator=rng
        ).tolist()  # p-tilde of the first hypothesis, any numbers
        held = {True: [0.0] * 60, False: [0.0] * 60}
        spoken = [n for n in range(1, 60) if first[n] != second[n]]
        for n in spoken:
            weight = 1 / abs(first[n] - second[n])
            held[first[n] > second[n]][first[n]] += weight * share[n]
            held[first[n] > second[n]][second[n]] += weight * (1 - share[n])
        read = {later: sum(m * value for m, value in enumerate(held[later])) for later in held}
        offs.append(read[True] - read[False] - sum(share[n] for n in spoken))
    assert offs == pytest.approx([offs[0]] * 3, abs=1e-9)


def test_heads_that_mix_need_not_grow_with_the_length() -> None:
    """(K - 1)^2 + 1 heads serve any table (docs/concepts): scores of slots, against sums of any p-tilde."""
    count, length = 3, 50
    table, rng = (
        sih.random_parents(count, length, rng=1)[:, :length],
        torch.Generator().manual_seed(0),
    )
    phi = torch.randn(length, count - 1, generator=rng, dtype=torch.float64)
    tokens = range(count, length)
    heads: dict[tuple[int, int], dict[int, float]] = {
        (h, d): {} for h in range(1, count) for d in range(count - 1)
    }
    for n, h in itertools.product(tokens, range(1, count)):
        points = torch.cat([torch.ones(count, 1, dtype=torch.float64), phi[table[:, n]]], dim=1)
        wanted = torch.tensor(
            [float(g == h) - float(g == 0) for g in range(count)], dtype=torch.float64
        )
        for d, value in enumerate(torch.linalg.solve(points, wanted)[1:].tolist()):
            heads[h, d][n] = value
    assert len(heads) + 1 == (count - 1) ** 2 + 1
    added = {head: 1 + max(map(abs, weights.values())) for head, weights in heads.items()}
    offs = []
    for _ in range(3):
        shares = torch.softmax(
            torch.randn(length, count, generator=rng, dtype=torch.float64), dim=1
        )
        off = []
        for h in range(1, count):
            score = 0.0
            for d in range(count - 1):
                kept = {n: float((shares[n] * phi[table[:, n], d]).sum()) for n in tokens}
                assert all(heads[h, d][n] + added[h, d] > 0 for n in tokens)
                score += sum(
                    (heads[h, d][n] + added[h, d]) * kept[n] for n in tokens
                )  # positive weights
                score -= added[h, d] * sum(kept.values())  # the head of equal weights
            off.append(score - float((shares[count:, h] - shares[count:, 0]).sum()))
        offs.append(off)
    assert offs[0] == pytest.approx(offs[1], abs=1e-9)
    assert offs[0] == pytest.approx(offs[2], abs=1e-9)
