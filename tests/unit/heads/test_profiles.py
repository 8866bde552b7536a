"""The criterion for heads in which lags mix, against plain loops over what is stored and read."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from support.circuits import third_layer

import sih
from sih.heads.mixing import mixing_profile
from sih.heads.profiles import Profile, centring
from sih.models.disentangled.dense import DisentangledTransformer

TOKENS = [0, 1, 1, 0, 0, 0, 1, 0, 1, 1]


def random_profile(lags: tuple[int, ...], length: int, heads: int, both: bool) -> Profile:
    rng = torch.Generator().manual_seed(heads)
    span = lags[-1] - lags[0]

    def draw(columns: int) -> torch.Tensor:
        return torch.randn((heads, columns), generator=rng, dtype=torch.float64)

    key = draw(length) if both else None
    return Profile(lags, length, draw(length - lags[-1]).exp(), draw(length + span - lags[0]), key)


def scores_by_loops(profile: Profile, q: list[list[float]], i: int) -> list[float]:
    """Store and read as the layers do, index by index: what each lag scores at query i."""
    lags, heads = profile.lags, profile.heads
    u, g = profile.weights.tolist(), profile.query.tolist()
    key = None if profile.key is None else profile.key.tolist()

    def stored(h: int, at: int, index: int) -> float:
        terms = [
            u[h][at - n] * q[n][b]
            for n in range(lags[-1], at + 1)
            for b, lag in enumerate(lags)
            if n - lag == index
        ]
        return float(sum(terms))

    scores = []
    for lag in lags:
        j = i - lag + 1
        total = 0.0
        for h in range(heads):
            for m in range(i + 1):
                if 0 <= j - m - 1 + profile.span < len(g[h]):
                    total += stored(h, i, m) * g[h][j - m - 1 + profile.span]
                if key is not None:
                    total += stored(h, j, m) * key[h][i - m]
        scores.append(total)
    return scores


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("lags", [(1, 2), (2, 5), (1, 3, 4), (2, 3, 5, 8)], ids=str)
def test_the_matrices_say_what_a_lag_scores(lags: tuple[int, ...], both: bool) -> None:
    length = 16
    profile = random_profile(lags, length, heads=2, both=both)
    q = torch.randn(
        (length, len(lags)), generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    for i in range(lags[-1], length):
        looped = scores_by_loops(profile, q.tolist(), i)
        formula = sum(profile.matrices[o] @ q[i - o] for o in range(i - lags[-1] + 1))
        assert torch.tensor(looped, dtype=torch.float64).sub(formula).abs().max() < 1e-12


def test_the_criterion_decides_whether_scores_are_the_evidence() -> None:
    lags, length = (1, 2, 3, 4), 20
    exact = mixing_profile(lags, length)
    wrong = Profile(
        lags, length, exact.weights, exact.query.clone().index_fill_(1, torch.tensor([9]), 0.0)
    )
    q = torch.randn((length, 4), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q = q - q.mean(dim=-1, keepdim=True)

    def furthest(profile: Profile) -> float:
        gaps = []
        for i in range(lags[-1], length):
            score = torch.tensor(scores_by_loops(profile, q.tolist(), i), dtype=torch.float64)
            gaps.append((centring(4) @ score - q[lags[-1] : i + 1].sum(dim=0)).abs().max().item())
        return max(gaps)

    assert exact.residual.max() < 1e-12
    assert furthest(exact) < 1e-11
    assert wrong.residual.max() > 0.1
    assert furthest(wrong) > 0.1


@pytest.mark.parametrize("both", [False, True])
def test_the_residual_bounds_what_any_evidence_can_lose(both: bool) -> None:
    profile = random_profile((1, 3, 4), 12, heads=2, both=both)
    bound = profile.log_odds_error(spread=1.0)
    rng = torch.Generator().manual_seed(1)
    q = torch.rand(
        (2000, 8, 3), generator=rng, dtype=torch.float64
    ).round()  # corners are the worst
    off = torch.einsum("okl,nol->nk", profile.deviations, q)
    found = (off.amax(dim=-1) - off.amin(dim=-1)).max().item()
    assert bound / 3 < found <= bound + 1e-12


def test_blocks_differ_from_the_read_by_what_a_row_or_a_column_shares() -> None:
    profile = mixing_profile((1, 2, 3), 40)
    m, j = torch.meshgrid(torch.arange(40), torch.arange(40), indexing="ij")
    n = j - m - 1
    wanted = (n >= -2) & (n + 2 < profile.query.shape[1])
    for head in range(2):
        moved = (
            profile.query_blocks[head]
            - profile.query[head][(n + 2).clamp(0, profile.query.shape[1] - 1)]
        )
        # a(j) + b(m): every second difference whose four corners are read is 0
        corners = wanted[1:, 1:] & wanted[:-1, :-1] & wanted[1:, :-1] & wanted[:-1, 1:]
        second = moved[1:, 1:] + moved[:-1, :-1] - moved[1:, :-1] - moved[:-1, 1:]
        assert second[corners].abs().max() < 1e-10
    assert (
        profile.query_blocks.abs().max() < profile.query.abs().max() / 7
    )  # a parabola becomes eight times smaller


@pytest.mark.parametrize("both", [False, True])
def test_a_profile_survives_json(both: bool) -> None:
    profile = random_profile((1, 3, 4), 12, heads=2, both=both)
    again = Profile.from_dict(json.loads(json.dumps(profile.to_dict())))
    assert again == profile
    assert hash(again) == hash(profile)
    assert again != mixing_profile((1, 3, 4), 12)


def test_a_profile_is_drawn() -> None:
    assert [ax.get_xlabel()[:6] for ax in mixing_profile((1, 2, 3), 40).plot().axes] == [
        "offset",
        "$n$",
        "$x$, a",
    ]


def test_what_the_key_reads_adds_to_the_size() -> None:
    profile = random_profile((1, 3, 4), 12, heads=2, both=True)
    assert profile.key is not None
    alone = replace(profile, key=None)
    largest = [max(map(abs, row)) for row in profile.key.tolist()]
    added = sum(total * most for total, most in zip(profile.totals.tolist(), largest, strict=True))
    assert profile.size - alone.size == pytest.approx(added, rel=1e-12)


def test_what_both_reads_find_at_rest_is_taken_off() -> None:
    """With one first-layer head it does not cancel by itself: the weights' attention against loops."""
    lags, length, temper = (1, 3), 10, 0.5
    task = sih.Task([[0.8, 0.2], [0.3, 0.7]], lags, length, [0.25, 0.75])
    profile = random_profile(lags, length, heads=1, both=True)
    bayes = sih.construct(task, target="bayes", symmetric=False).circuit
    circuit = replace(bayes, profile=profile, head_of_offset=(), temper=temper, beta=2 / temper)
    model = DisentangledTransformer(
        2, length, circuit.model_heads, temperature=1.0, dtype=torch.float64, init="zeros"
    )
    model.circuit = circuit
    circuit.write(model.requires_grad_(False), task, "probability")
    attention = third_layer(model, torch.tensor([TOKENS]))[0].tolist()
    shares = [[0.0, 0.0] for _ in TOKENS]
    for n in range(lags[-1], length):
        powers = [task.P[TOKENS[n - lag], TOKENS[n]].item() ** temper for lag in lags]
        shares[n] = [power / sum(powers) - 0.5 for power in powers]
    for i in range(lags[-1], length):
        odds = [
            p * math.exp(2 / temper * s)
            for p, s in zip((0.25, 0.75), scores_by_loops(profile, shares, i), strict=True)
        ]
        assert attention[i] == pytest.approx([odd / sum(odds) for odd in odds], abs=1e-9)
