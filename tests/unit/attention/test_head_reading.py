from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

import sih
from sih.attention.head_matching import uniform_attention
from sih.attention.head_reading import HeadReading, read_head


def true_posterior(batch: sih.Batch, task: sih.Task, b: int, i: int) -> float:
    """The posterior of the sequence's lag after the tokens up to i, in loops."""
    row = batch.tokens[b].tolist()
    likelihoods = {
        k: math.prod(task.P[row[m - k], row[m]].item() for m in range(task.max_lag, i + 1))
        for k in task.lags
    }
    return likelihoods[int(batch.lags[b])] / sum(likelihoods.values())


def test_every_number_against_loops(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 3), length=14)
    batch = sih.sample(task, 5, rng=rng)
    later = torch.ones(14, 14).triu(1) > 0
    scores = 2 * torch.randn(5, 14, 14, generator=rng, dtype=torch.float64)
    attention = torch.softmax(scores.masked_fill(later, -torch.inf), -1)
    found = read_head("1.1", attention, batch, task)
    a, queries = attention.tolist(), range(3, 13)
    cells = [(b, i) for b in range(5) for i in queries]
    for shift, shares in ((0, found.parents), (1, found.copies)):
        for k in (1, 3):
            assert shares[k] == pytest.approx(
                sum(a[b][i][i - k + shift] for b, i in cells) / len(cells)
            )
    own = batch.lags.tolist()
    assert found.selected == pytest.approx(
        sum(a[b][i][i - own[b] + 1] for b, i in cells) / len(cells)
    )
    assert found.exact == pytest.approx(
        sum(true_posterior(batch, task, b, i) for b, i in cells) / len(cells)
    )
    right = [(1 if a[b][i][i] >= a[b][i][i - 2] else 3) == own[b] for b, i in cells]
    assert found.accuracy == pytest.approx(sum(right) / len(cells))
    apart, flat = 0.0, 0.0
    for b, i in cells:
        others = [sum(a[c][i][j] for c in range(5) if c != b) / 4 for j in range(14)]
        apart += sum(abs(a[b][i][j] - others[j]) for j in range(14)) / 2
        flat += sum(abs(a[b][i][j] - (j <= i) / (i + 1)) for j in range(14)) / 2
    assert found.dependence == pytest.approx(apart / len(cells))
    assert found.from_uniform == pytest.approx(flat / len(cells))
    assert found.first_key == pytest.approx(sum(a[b][i][0] for b, i in cells) / len(cells))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("uniform", "attends to all keys alike"),
        ("previous", "attends 1 back"),
        ("itself", "attends 0 back"),
        ("first", "rests on position 0"),
        ("pairs", "attends at offsets 1 2 mod 4"),
    ],
)
def test_simple_heads_are_seen_for_what_they_are(
    name: str, role: str, task: sih.Task, rng: torch.Generator
) -> None:
    i = torch.arange(32)
    offset = i[:, None] - i
    wanted = {
        "uniform": offset >= 0,
        "previous": offset == 1,
        "itself": offset == 0,
        "first": (i == 0).expand(32, 32),
        "pairs": (offset >= 0) & ((offset % 4 == 1) | (offset % 4 == 2)),
    }[name].double()
    wanted[0] = torch.nn.functional.one_hot(torch.tensor(0), 32)
    attention = (wanted / wanted.sum(dim=-1, keepdim=True)).expand(4, 32, 32)
    found = read_head("1.1", attention, sih.sample(task, 4, rng=rng), task)
    assert found.role == role
    assert found.dependence == pytest.approx(0)


def test_attention_that_follows_nothing_is_said_to(task: sih.Task, rng: torch.Generator) -> None:
    scores = 3 * torch.randn(4, 32, 32, generator=rng)
    attention = torch.softmax(scores.masked_fill(torch.ones(32, 32).triu(1) > 0, -torch.inf), -1)
    batch = sih.sample(task, 4, rng=rng)
    assert read_head("1.1", attention, batch, task).role == "attends by tokens and positions"
    assert (
        read_head("1.1", attention[:1].expand(4, 32, 32), batch, task).role == "attends by position"
    )
    assert read_head(
        "1.1", uniform_attention(32).expand(4, 32, 32), batch, task
    ).correlation == pytest.approx(0)


def mixed(at: dict[int, float], time: int = 32) -> torch.Tensor:
    """Attention with these shares at these offsets, what is left spread over the past."""
    rest = 1 - sum(at.values())
    attention = rest * uniform_attention(time).double()
    for offset, share in at.items():
        attention = attention + share * torch.eye(time, dtype=torch.float64).roll(offset, 0).tril()
    return attention / attention.sum(dim=-1, keepdim=True)


def test_a_head_of_one_offset_selects_nothing_though_a_candidate_is_there(task: sih.Task) -> None:
    """With lags 1, 2, 3 a previous-token head attends to the candidate of lag 2, always."""
    batch = sih.sample(task, 8, rng=0)
    found = read_head("1.1", mixed({1: 0.7}).expand(8, 32, 32), batch, task)
    assert sum(found.copies.values()) > 0.5
    assert (found.role, found.selective) == ("attends 1 back", False)


def test_selective_is_said_against_the_exact_posterior(task: sih.Task) -> None:
    """Attention that is a part of the posterior selects from 0.8 of it on; below that it does not."""
    batch = sih.sample(task, 64, rng=0)
    weights = sih.lag_posterior(batch.tokens, task)
    for part, selective in ((1.0, True), (0.85, True), (0.75, False)):
        attention = (1 - part) * uniform_attention(32).double().repeat(64, 1, 1)
        for n, lag in enumerate(task.lags):
            rows = torch.arange(lag - 1, 32)
            attention[:, rows, rows - lag + 1] += part * weights[:, rows, n]
        attention = attention / attention.sum(dim=-1, keepdim=True)
        found = read_head("3.1", attention, batch, task)
        assert found.selective is selective, (part, found.selected, found.exact)
        words = (
            "selects the token to copy"
            if selective
            else "attends to the candidates, selecting none"
        )
        assert found.role == words


def test_what_attends_to_all_candidates_is_of_the_last_layer_or_of_the_last_tokens(
    task: sih.Task,
) -> None:
    batch, alike = sih.sample(task, 8, rng=0), mixed({0: 0.3, 1: 0.3, 2: 0.3}).expand(8, 32, 32)
    assert read_head("3.1", alike, batch, task).role == "attends to the candidates, selecting none"
    assert read_head("2.1", alike, batch, task, last=False).role == "attends to the last 4 tokens"
    assert (
        read_head("2.1", mixed({}).expand(8, 32, 32), batch, task, last=False).role
        == "attends to all keys alike"
    )


NOTHING = HeadReading(
    name="2.1",
    parents={1: 0.0, 3: 0.0},
    copies={1: 0.0, 3: 0.0},
    selected=0.0,
    exact=1.0,
    accuracy=0.0,
    correlation=0.0,
    period=None,
    residues=(),
    fit=0.0,
    dependence=0.5,
    from_uniform=0.9,
    first_key=0.0,
    start=0.0,
    offsets=(0.0,) * 12,
    last=True,
)
"""A head of which nothing can be said but that tokens matter, with lags 1 and 3."""
NO_ROLE, FAR, EIGHTHS = (
    "attends by tokens and positions",
    (0.0,) * 4,
    (0.125, 0.125, 0.125, 0.125, 0.5),
)


ROLES: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    (
        {"from_uniform": 0.05},
        "attends to all keys alike",
        {"from_uniform": 0.051},
        "spreads over the past",
    ),
    ({"offsets": (*FAR, 0.1, 0.6)}, "attends 5 back", {"offsets": (*FAR, 0.1, 0.59)}, NO_ROLE),
    (
        {"selected": 0.4, "exact": 0.5},
        "selects the token to copy",
        {"selected": 0.39, "exact": 0.5},
        NO_ROLE,
    ),
    (
        {"selected": 0.8, "dependence": 0.1},
        "selects the token to copy",
        {"selected": 0.8, "dependence": 0.09},
        "attends by position",
    ),
    (
        {"correlation": 0.8, "parents": {1: 0.25, 3: 0.25}},
        "compares the lags' tokens with its own",
        {"correlation": 0.8, "parents": {1: 0.25, 3: 0.24}},
        "leans to the lags' likely tokens",
    ),
    (
        {"correlation": -0.8, "parents": {1: 0.5, 3: 0.0}},
        "compares the lags' tokens with its own, inversely",
        {"correlation": -0.79, "parents": {1: 0.5, 3: 0.0}},
        "leans to the lags' unlikely tokens",
    ),
    (
        {"copies": {1: 0.25, 3: 0.25}},
        "attends to the candidates, selecting none",
        {"copies": {1: 0.25, 3: 0.24}},
        NO_ROLE,
    ),
    (
        {"copies": {1: 0.5, 3: 0.0}},
        "attends to the candidates, selecting none",
        {"copies": {1: 0.5, 3: 0.0}, "last": False},
        NO_ROLE,
    ),
    (
        {"correlation": 0.3, "parents": {1: 0.2, 3: 0.0}},
        "leans to the lags' likely tokens",
        {"correlation": 0.3, "parents": {1: 0.19, 3: 0.0}},
        NO_ROLE,
    ),
    (
        {"correlation": -0.3, "parents": {1: 0.2, 3: 0.0}},
        "leans to the lags' unlikely tokens",
        {"correlation": -0.29, "parents": {1: 0.2, 3: 0.0}},
        NO_ROLE,
    ),
    ({"first_key": 0.8}, "rests on position 0", {"first_key": 0.79}, NO_ROLE),
    ({"start": 0.8}, "rests on the start token", {"start": 0.79}, NO_ROLE),
    (
        {"offsets": EIGHTHS},
        "attends to the last 4 tokens",
        {"offsets": (*EIGHTHS[:3], 0.1, 0.5)},
        NO_ROLE,
    ),
    (
        {"period": 4, "fit": 0.5, "residues": (0, 1, 2)},
        "attends at offsets 0 1 2 mod 4",
        {"period": 4, "fit": 0.49, "residues": (0, 1, 2)},
        NO_ROLE,
    ),
    (
        {"period": 9, "fit": 0.5, "residues": (0, 1, 2, 5)},
        "attends with period 9",
        {"period": 9, "fit": 0.49, "residues": (0, 1, 2, 5)},
        NO_ROLE,
    ),
    ({"from_uniform": 0.25}, "spreads over the past", {"from_uniform": 0.26}, NO_ROLE),
    ({"dependence": 0.1}, NO_ROLE, {"dependence": 0.09}, "attends by position"),
]
"""What a head has just at a threshold of docs/field_tools.md, and its role there; the same below it."""


@pytest.mark.parametrize(("at", "role", "below", "role_below"), ROLES)
def test_a_role_holds_from_its_threshold_on(
    at: dict[str, Any], role: str, below: dict[str, Any], role_below: str
) -> None:
    assert dataclasses.replace(NOTHING, **at).role == role
    assert dataclasses.replace(NOTHING, **below).role == role_below
