from __future__ import annotations

import pytest
import torch

import sih
from sih.analysis.head_matching import uniform_attention
from sih.analysis.head_reading import read_head


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
            assert shares[k] == pytest.approx(sum(a[b][i][i - k + shift] for b, i in cells) / len(cells))
    own = batch.lags.tolist()
    assert found.selected == pytest.approx(sum(a[b][i][i - own[b] + 1] for b, i in cells) / len(cells))
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
        ("uniform", "tells no key from another"),
        ("previous", "looks 1 back"),
        ("itself", "looks 0 back"),
        ("first", "rests on position 0"),
        ("pairs", "looks at offsets 1 2 mod 4"),
    ],
)
def test_simple_heads_are_seen_for_what_they_are(name: str, role: str, task: sih.Task, rng: torch.Generator) -> None:
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
    assert read_head("1.1", attention, batch, task).role == "goes by tokens and positions"
    assert read_head("1.1", attention[:1].expand(4, 32, 32), batch, task).role == "goes by position, in no simple way"
    assert read_head("1.1", uniform_attention(32).expand(4, 32, 32), batch, task).correlation == pytest.approx(0)
