"""The looking circuit: its weights against loops over the definition, its bound, and what it leaves out."""

import math
from typing import Any

import pytest
import torch
from support.circuits import third_layer

import sih
from sih.base.errors import FieldError
from sih.circuits import circuit_weights, verify
from sih.circuits.looking import looking_error, simplex
from sih.task import Task

LAG_SETS = [(4,), (1, 2), (2, 5), (1, 2, 3), (3, 5, 7), (1, 3, 4), (1, 2, 4, 8)]


def posterior(row: list[int], task: Task, i: int) -> list[float]:
    """The posterior from the transitions at offset 0 and from max_lag - 1 on, in loops."""
    first = task.max_lag
    used = [m for m in range(first, i + 1) if i - m == 0 or i - m >= first - 1]
    logs = [math.log(prior) for prior in task.lag_prior.tolist()]
    for index, k in enumerate(task.lags):
        logs[index] += sum(math.log(task.P[row[m - k], row[m]]) for m in used)
    top = max(logs)
    weights = [math.exp(value - top) for value in logs]
    return [weight / sum(weights) for weight in weights]


def by_definition(row: list[int], task: Task, c: Any, i: int) -> list[float]:
    """The third layer's weights at row i as the module's docstring defines them, in loops."""
    K, first, colours = len(task.lags), task.max_lag, list(c.head_of_offset)
    corners = simplex(max(colours) + 1).tolist()
    total = c.length**2 / (c.temper * c.looking)

    def found(m: int) -> list[float]:
        powers = [float(task.P[row[m - k], row[m]]) ** c.temper for k in task.lags]
        return [power / sum(powers) for power in powers]

    def looks(j: int, h: int, p: dict[int, list[float]]) -> dict[int, float]:
        keys = range(first, j + 1)
        scores = {
            m: sum(
                p[m][n] * corners[colours[(j - m + k) % len(colours)]][h]
                for n, k in enumerate(task.lags)
            )
            for m in keys
        }
        weights = {m: math.exp(c.looking * scores[m]) for m in keys}
        rest = total - len(keys)
        return {m: weights[m] / (sum(weights.values()) + rest) for m in keys}

    live, even = (
        {m: found(m) for m in range(first, i + 1)},
        {m: [1 / K] * K for m in range(first, i + 1)},
    )
    scores = []
    for n, k0 in enumerate(task.lags):
        score = math.log(task.lag_prior[n]) + K / c.temper * (live[i][n] - 1 / K)
        for h in range(c.heads):
            one, other = looks(i - k0 + 1, h, live), looks(i - k0 + 1, h, even)
            for m in one:
                if i - m >= max(first - 1, 1):
                    read = corners[colours[(i - m + 1) % len(colours)]][h]
                    score += total * K / (c.temper * c.looking) * read * (one[m] - other[m])
        scores.append(score)
    return [
        math.exp(s - max(scores)) / sum(math.exp(t - max(scores)) for t in scores) for s in scores
    ]


def make(lags: tuple[int, ...], length: int, rng: torch.Generator) -> tuple[Task, torch.Tensor]:
    prior = torch.rand(len(lags), generator=rng) + 0.2
    task = Task(
        sih.random_transition_matrix(4, rng=rng), lags, length, (prior / prior.sum()).tolist()
    )
    return task, torch.cat(
        [sih.sample(task, 3, rng=rng).tokens, torch.randint(4, (2, length), generator=rng)]
    )


@pytest.mark.parametrize("lags", LAG_SETS, ids=str)
def test_it_is_the_posterior_of_what_it_uses_within_its_bound(
    lags: tuple[int, ...], rng: torch.Generator
) -> None:
    task, tokens = make(lags, 28, rng)
    model = sih.construct(task, target="looking")
    found, weights = verify(model, size=4), third_layer(model, tokens)
    assert found.ok
    assert found.bound is not None
    assert found.bound < 0.02
    assert model.circuit.heads == max(sih.least_heads(lags).heads - 1, 1)
    exact = model.circuit.posterior(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        for i in range(task.max_lag - 1, 28):
            wanted = posterior(row, task, i)
            assert exact[b, i].tolist() == pytest.approx(wanted, abs=1e-10)
            assert weights[b, i].tolist() == pytest.approx(wanted, abs=found.bound)


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4)], ids=str)
def test_strong_looking_follows_the_definition_too(
    lags: tuple[int, ...], rng: torch.Generator
) -> None:
    task, tokens = make(lags, 24, rng)
    model = sih.construct(task, target="looking", temper=0.5, looking=0.7)
    weights, closed = third_layer(model, tokens), circuit_weights(tokens, task, model.circuit)
    for b, row in enumerate(tokens.tolist()):
        for i in range(task.max_lag, 24):
            wanted = by_definition(row, task, model.circuit, i)
            assert weights[b, i].tolist() == pytest.approx(wanted, abs=1e-7)
            assert closed[b, i].tolist() == pytest.approx(wanted, abs=1e-7)
    assert (weights[:, task.max_lag - 1] - task.lag_prior).abs().max() < 1e-7


def test_two_lags_next_to_each_other_lose_nothing(rng: torch.Generator) -> None:
    task, tokens = make((1, 2), 64, rng)
    model = sih.construct(task, target="looking")
    assert model.config.heads == (1, 1, 1)
    assert (model.predict(tokens) - sih.bma(tokens, task))[:, 1:].abs().max() < 1e-5


@pytest.mark.parametrize(
    "block",
    [
        ("2.1", "position", "1.1/position"),
        ("3.1", "position", "2.2/position"),
        ("3.1", "1.1/position", "position"),
    ],
)
def test_a_flipped_sign_fails(block: tuple[str, str, str], task: Task) -> None:
    model = sih.construct(task, target="looking")
    model.block(*block).neg_()
    assert not verify(model, task).ok


def test_float32_wants_strengths_that_it_can_hold(task: Task) -> None:
    with pytest.raises(FieldError, match="too few digits"):
        sih.construct(task, target="looking", dtype=torch.float32)
    model = sih.construct(task, target="looking", temper=1.0, looking=1.0, dtype=torch.float32)
    assert verify(model, task).ok
    with pytest.raises(FieldError, match="at most 10"):
        sih.construct(task, target="looking", looking=0.0)


@pytest.mark.parametrize(("temper", "looking"), [(1e-3, 1e-2), (0.1, 1.0), (0.5, 0.7)])
@pytest.mark.parametrize(("lags", "colours"), [((1, 2), 2), ((1, 2, 3), 3), ((1, 3, 4), 4)])
def test_the_bound_is_the_one_that_is_proved(
    lags: tuple[int, ...], colours: int, temper: float, looking: float
) -> None:
    """The module's docstring, number by number; it takes zeta below 1/2 for granted."""
    P, R = (
        ([[0.8, 0.2], [0.3, 0.7]], math.log(0.8 / 0.2))
        if temper > 0.01
        else ([[0.5, 0.5], [1.0, 0.0]], 100.0)
    )
    task = Task(P, lags, 24)
    K, n = len(lags), 24 - lags[-1]
    spread = R * math.exp(temper * R)
    tau = looking * temper * spread / (2 * math.sqrt(K))
    sigma = looking * math.sqrt((1 - K / colours) / K)
    eta, C = math.exp(sigma + tau) - 1, 24**2 / (temper * looking)
    zeta = n * eta / C
    kappa = (
        eta
        + (1 + eta) * zeta / (1 - zeta)
        + math.sqrt(colours - 1) * (1 + eta) ** 2 * n / (C * (1 - zeta) ** 2)
    )
    tempering = 0.625 * temper * R**2 * math.exp(temper * R)
    found = looking_error(task, colours, temper, looking, torch.float64)
    assert found.truncation == pytest.approx(
        n * (tempering + math.sqrt(K) * spread * kappa), rel=1e-12
    )


@pytest.mark.parametrize(
    "lags", [(1, 3, 4), (1, 3, 7), (1, 2, 3, 4, 8), (2, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 7, 8)]
)
def test_every_constant_is_of_double_precision(lags: tuple[int, ...]) -> None:
    """Strong evidence and more colours than lags: 1/K rounded to single precision would be off by 1e5 tolerances."""
    assert sih.least_heads(lags).heads > len(lags)
    task = Task(sih.random_transition_matrix(4, rng=0), lags, 2 * max(lags) + 8)
    found = verify(sih.construct(task, target="looking", temper=1.0, looking=1.0), task)
    assert found.ok, (found.max_error, found.tolerance)
