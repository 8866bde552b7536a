from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

import sih
from sih.attention.head_matching import uniform_attention
from sih.attention.head_reading import ROLES as HEAD_ROLES
from sih.attention.head_reading import HeadReading, read_head
from sih.training.runs.run_store import RunStore


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
        ("uniform", "attends uniformly"),
        ("previous", "attends to offset 1"),
        ("itself", "attends to offset 0"),
        ("first", "sink at position 0"),
        ("pairs", "periodic: offsets 1, 2 mod 4"),
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
    assert read_head("1.1", attention, batch, task).role == "content-dependent, no simple pattern"
    assert (
        read_head("1.1", attention[:1].expand(4, 32, 32), batch, task).role
        == "position-only, no simple pattern"
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
    assert (found.role, found.selective) == ("attends to offset 1", False)


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
        words = "selects the true candidate" if selective else "attends to candidates"
        assert found.role == words


def test_what_attends_to_all_candidates_is_of_the_last_layer_or_of_the_last_tokens(
    task: sih.Task,
) -> None:
    batch, alike = sih.sample(task, 8, rng=0), mixed({0: 0.3, 1: 0.3, 2: 0.3}).expand(8, 32, 32)
    assert read_head("3.1", alike, batch, task).role == "attends to candidates"
    assert read_head("2.1", alike, batch, task, last=False).role == "local: the last 4 tokens"
    assert (
        read_head("2.1", mixed({}).expand(8, 32, 32), batch, task, last=False).role
        == "attends uniformly"
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
    by_tokens=0.0,
    from_uniform=0.9,
    mean_from_uniform=0.9,
    first_key=0.0,
    start=0.0,
    offsets=(0.0,) * 12,
    last=True,
)
"""A head of which nothing can be said but that tokens matter, with lags 1 and 3."""
NO_ROLE, FAR, EIGHTHS = (
    "content-dependent, no simple pattern",
    (0.0,) * 4,
    (0.125, 0.125, 0.125, 0.125, 0.5),
)


ROLES: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
    (
        {"from_uniform": 0.05},
        "attends uniformly",
        {"from_uniform": 0.051},
        "nearly uniform",
    ),
    (
        {"offsets": (*FAR, 0.1, 0.6), "first_key": 0.9},
        "attends to offset 5",
        {"offsets": (*FAR, 0.1, 0.59), "first_key": 0.9},
        "sink at position 0",
    ),
    (
        {"selected": 0.4, "exact": 0.5},
        "selects the true candidate",
        {"selected": 0.39, "exact": 0.5},
        NO_ROLE,
    ),
    (
        {"selected": 0.8, "dependence": 0.1},
        "selects the true candidate",
        {"selected": 0.8, "dependence": 0.09},
        "position-only, no simple pattern",
    ),
    (
        {"correlation": 0.8, "parents": {1: 0.25, 3: 0.25}},
        "compares with parents (+)",
        {"correlation": 0.8, "parents": {1: 0.25, 3: 0.24}},
        "prefers likely parents",
    ),
    (
        {"correlation": -0.8, "parents": {1: 0.5, 3: 0.0}},
        "compares with parents (-)",
        {"correlation": -0.79, "parents": {1: 0.5, 3: 0.0}},
        "prefers unlikely parents",
    ),
    (
        {"copies": {1: 0.25, 3: 0.25}},
        "attends to candidates",
        {"copies": {1: 0.25, 3: 0.24}},
        NO_ROLE,
    ),
    (
        {"copies": {1: 0.5, 3: 0.0}},
        "attends to candidates",
        {"copies": {1: 0.5, 3: 0.0}, "last": False},
        NO_ROLE,
    ),
    (
        {"correlation": 0.3, "parents": {1: 0.2, 3: 0.0}},
        "prefers likely parents",
        {"correlation": 0.3, "parents": {1: 0.19, 3: 0.0}},
        NO_ROLE,
    ),
    (
        {"correlation": -0.3, "parents": {1: 0.2, 3: 0.0}},
        "prefers unlikely parents",
        {"correlation": -0.29, "parents": {1: 0.2, 3: 0.0}},
        NO_ROLE,
    ),
    ({"first_key": 0.8}, "sink at position 0", {"first_key": 0.79}, NO_ROLE),
    ({"start": 0.8}, "sink at the start token", {"start": 0.79}, NO_ROLE),
    (
        {"offsets": EIGHTHS},
        "local: the last 4 tokens",
        {"offsets": (*EIGHTHS[:3], 0.1, 0.5)},
        "attends to offset 4",
    ),
    (
        {"period": 4, "fit": 0.5, "residues": (0, 1, 2)},
        "periodic: offsets 0, 1, 2 mod 4",
        {"period": 4, "fit": 0.49, "residues": (0, 1, 2)},
        NO_ROLE,
    ),
    (
        {"period": 9, "fit": 0.5, "residues": (0, 1, 2, 5)},
        "periodic: period 9",
        {"period": 9, "fit": 0.49, "residues": (0, 1, 2, 5)},
        NO_ROLE,
    ),
    (
        {"by_tokens": 0.4},
        "content-based: tokens of query and key",
        {"by_tokens": 0.39},
        NO_ROLE,
    ),
    (
        {"by_tokens": 0.9, "dependence": 0.1},
        "content-based: tokens of query and key",
        {"by_tokens": 0.9, "dependence": 0.09},
        "position-only, no simple pattern",
    ),
    (
        {"offsets": (*FAR, 0.13, 0.0, 0.1, 0.13, 0.13, 0.11)},
        "attends to offsets 4, 7, 8, 9",
        {"offsets": (*FAR, 0.13, 0.0, 0.1, 0.13, 0.13, 0.1)},
        NO_ROLE,
    ),
    (
        {"offsets": (*FAR, 0.3, 0.0, 0.1, 0.2, 0.1)},
        "attends to offsets 4, 7",
        {"offsets": (*FAR, 0.3, 0.0, 0.1, 0.19, 0.1)},
        "attends to offsets 4, 7, 8",
    ),
    ({"from_uniform": 0.25}, "nearly uniform", {"from_uniform": 0.26}, NO_ROLE),
    (
        {"mean_from_uniform": 0.25},
        "content-based: no preferred offset",
        {"mean_from_uniform": 0.26},
        NO_ROLE,
    ),
    ({"dependence": 0.1}, NO_ROLE, {"dependence": 0.09}, "position-only, no simple pattern"),
]
"""Measures of a head just at a threshold of `ROLES` (docs/roles.md), and its role there; the same below it."""


@pytest.mark.parametrize(("at", "role", "below", "role_below"), ROLES)
def test_a_role_holds_from_its_threshold_on(
    at: dict[str, Any], role: str, below: dict[str, Any], role_below: str
) -> None:
    assert dataclasses.replace(NOTHING, **at).role == role
    assert dataclasses.replace(NOTHING, **below).role == role_below


def test_the_table_of_roles_has_every_role_in_the_order_in_which_they_are_tried() -> None:
    """The tests above meet each entry, and an entry's criterion names its threshold."""
    seen = {_entry(role) for _, role, _, below in ROLES for role in (role, below)}
    assert seen == set(HEAD_ROLES)
    everything: dict[str, Any] = {
        "from_uniform": 0.0,
        "offsets": (0.9,),
        "first_key": 1.0,
        "by_tokens": 1.0,
        "mean_from_uniform": 0.0,
    }
    order = [
        name
        for name in HEAD_ROLES
        if name == _entry(dataclasses.replace(NOTHING, **everything).role)
    ]
    assert order == [next(iter(HEAD_ROLES))]


def _entry(role: str) -> str:
    """The entry of the table that a role is of: the one whose words it begins with."""
    begins = {
        "attends uniformly": "attends uniformly",
        "attends to offset ": "attends to offset o",
        "attends to offsets ": "attends to offsets o, p, ...",
        "attends to candidates": "attends to candidates",
        "compares ": "compares with parents (+) or (-)",
        "prefers ": "prefers likely parents, or unlikely",
        "sink ": "sink at position 0, or at the start token",
        "local: ": "local: the last n tokens",
        "periodic: ": "periodic: offsets r mod n, or period n",
    }
    return next((entry for start, entry in begins.items() if role.startswith(start)), role)


def content_head(kind: str, batch: sih.Batch) -> torch.Tensor:
    """Attention that is by construction of one kind, with later keys masked."""
    tokens, noise = batch.tokens, torch.Generator().manual_seed(5)
    size, time = tokens.shape
    offset = torch.arange(time)[:, None] - torch.arange(time)
    pairs = (tokens[:, :, None] + tokens[:, None, :]) % 5 == 2
    chance = torch.randn(size, time, time, generator=noise).double()
    listed = torch.isin(offset, torch.tensor([4, 5, 8])).double()
    scores = {
        "pairs": 3 * pairs.double(),
        "chance": 3 * chance,
        "chance nearby": 3 * chance - 0.1 * offset.double().abs(),
        "offsets": torch.log(listed + 0.04).expand(size, time, time),
    }[kind]
    return torch.softmax(scores.masked_fill(offset < 0, -torch.inf), dim=-1)


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        ("pairs", "content-based: tokens of query and key"),
        ("chance", "content-based: no preferred offset"),
        ("chance nearby", "content-dependent, no simple pattern"),
        ("offsets", "attends to offsets 4, 5, 8"),
    ],
)
def test_a_head_built_with_a_role_has_it_and_no_other_has(
    kind: str, role: str, task: sih.Task
) -> None:
    task = task.with_length(64)
    batch = sih.sample(task, 128, rng=3)
    found = read_head("2.1", content_head(kind, batch), batch, task, last=False)
    assert found.role == role, found


def test_the_roles_of_a_circuit_written_by_hand() -> None:
    """Layer by layer as its weights were written: comparing, spreading by residue, selecting."""
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=64)
    found = sih.diagnose(task, sih.sample(task, 64, rng=0), model=sih.construct(task))
    assert [head.role for head in found.heads] == [
        "compares with parents (+)",
        "periodic: offsets 0 mod 3",
        "periodic: offsets 1 mod 3",
        "periodic: offsets 2 mod 3",
        "selects the true candidate",
    ]
    assert found.heads[0].by_tokens > 0.4 > max(head.by_tokens for head in found.heads[1:])


def test_what_tokens_explain_against_loops(task: sih.Task) -> None:
    batch = sih.sample(task, 40, rng=2)
    a, tokens, queries = content_head("pairs", batch), batch.tokens.tolist(), range(3, 31)
    left = whole = 0.0
    for offset in range(31):
        cells = [(b, i) for b in range(40) for i in queries if i >= offset]
        rest = {
            (b, i): a[b, i, i - offset].item() - a[:, i, i - offset].mean().item() for b, i in cells
        }
        groups: dict[tuple[int, int], list[float]] = {}
        for b, i in cells:
            groups.setdefault((tokens[b][i], tokens[b][i - offset]), []).append(rest[b, i])
        total, inside = sum(x * x for x in rest.values()), 0.0
        for group in groups.values():
            inside += sum((x - sum(group) / len(group)) ** 2 for x in group)
        n = len(groups)
        whole += total
        left += total if len(cells) < 4 * n else inside * (len(cells) - 1) / (len(cells) - n)
    found = read_head("1.1", a, batch, task).by_tokens
    assert found == pytest.approx(1 - left / whole)
    assert 0.4 < found < 1


@pytest.mark.slow
def test_at_most_a_quarter_of_the_shipped_heads_have_no_simple_pattern() -> None:
    """Over all shipped models on tasks of one matrix, 64 sequences of seed 0."""
    roles = []
    for run in map(sih.open_run, RunStore().names(papers_task=True)):
        batch = sih.sample(run.task, size=64, rng=0)
        roles += [head.role for head in sih.diagnose(run.task, batch, model=run.model).heads]
    without = [role for role in roles if "no simple pattern" in role]
    assert len(without) <= len(roles) / 4, (len(without), len(roles))
