"""The Bayes-optimal circuit: the exact posterior, at every position, within a bound that is told."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from support.circuits import third_layer

import sih
from sih.circuits import circuit_weights, construct
from sih.task import Task

FIGURE_SETS = [(1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3), (3, 5, 7), (1, 2)]


def posterior_gap(task: Task, seed: int, **options: object) -> tuple[float, float]:
    """Largest error of a weight at any position from max_lag - 1 on, and the bound."""
    rng = torch.Generator().manual_seed(seed)
    model = construct(task, target="bayes", **options)  # type: ignore[call-overload]
    tokens = torch.cat(
        [
            sih.sample(task, 8, rng=rng).tokens,
            torch.randint(task.num_states, (4, task.length), generator=rng),
        ]
    )
    gap = third_layer(model, tokens) - sih.lag_posterior(tokens, task)
    bound = model.circuit.bounds(task, model.readout.dtype).posterior
    assert bound is not None
    return gap[:, task.max_lag - 1 :].abs().max().item(), bound


@pytest.mark.parametrize("lags", FIGURE_SETS, ids=str)
def test_posterior_to_1e_3_and_kl_to_1e_5_at_the_papers_length(lags: tuple[int, ...]) -> None:
    rng = torch.Generator().manual_seed(1)
    task = Task(sih.random_transition_matrix(5, rng=rng), lags, 128)
    error, bound = posterior_gap(task, seed=2)
    assert error < bound < 1e-3
    model, batch = construct(task, target="bayes"), sih.sample(task, 32, rng=rng)
    ours = sih.mean_kl(sih.kl_to_truth(model.predict(batch.tokens), batch, task), task).mean()
    best = sih.mean_kl(sih.kl_to_truth(sih.bma(batch.tokens, task), batch, task), task).mean()
    assert abs(ours - best) < 1e-5


@pytest.mark.parametrize("concentration", [0.1, 0.5, 1.0, 5.0])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_bound_holds(concentration: float, dtype: torch.dtype, symmetric: bool) -> None:
    for seed, lags in enumerate([(1, 2, 3), (2, 5), (1, 3, 4)]):
        rng = torch.Generator().manual_seed(seed)
        task = Task(sih.random_transition_matrix(4, rng=rng, concentration=concentration), lags, 48)
        error, bound = posterior_gap(task, seed, dtype=dtype, symmetric=symmetric)
        assert error <= bound


def test_two_first_layer_heads_win_in_float32(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    one, _ = posterior_gap(task, seed=0, dtype=torch.float32, symmetric=False)
    two, bound = posterior_gap(task, seed=0, dtype=torch.float32)  # the default there
    assert two < one / 3
    assert two < bound < 0.05


def test_the_prior_over_lags_is_in_the_scores(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(4, rng=rng), (1, 2, 5), 40, (0.7, 0.2, 0.1))
    error, bound = posterior_gap(task, seed=0)
    assert error < bound < 1e-4


@pytest.mark.parametrize("prior", [(0.02, 0.9, 0.08), (0.6, 0.1, 0.3)], ids=str)
def test_the_closed_form_holds_the_prior_with_its_sign(
    prior: tuple[float, ...], rng: torch.Generator
) -> None:
    """Weights and closed form against the posterior by Bayes' rule, in plain loops; before any evidence, the prior."""
    lags = (1, 2, 4)
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 32, prior)
    model, tokens = construct(task, target="bayes"), sih.sample(task, 4, rng=rng).tokens
    found, closed = third_layer(model, tokens), circuit_weights(tokens, task, model.circuit)
    P = task.P.tolist()
    for b, row in enumerate(tokens.tolist()):
        for i in range(task.max_lag - 1, task.length):
            joint = [
                p * math.prod(P[row[n - k]][row[n]] for n in range(task.max_lag, i + 1))
                for k, p in zip(lags, prior, strict=True)
            ]
            exact = [weight / sum(joint) for weight in joint]
            assert closed[b, i].tolist() == pytest.approx(exact, abs=1e-5)
            assert found[b, i].tolist() == pytest.approx(exact, abs=1e-5)
    assert closed[0, task.max_lag - 1].tolist() == pytest.approx(prior, abs=1e-12)
    assert sih.verify(model).ok


def test_impossible_lags_get_weight_zero(rng: torch.Generator) -> None:
    task = Task(sih.random_sparse(5, rng=rng, nonzero=2), (1, 2, 3), 64)
    tokens = sih.sample(task, 16, rng=rng).tokens
    exact = sih.lag_posterior(tokens, task)
    model = construct(task, target="bayes")
    found = third_layer(model, tokens)
    dead = exact == 0
    dead[:, : task.max_lag - 1] = False
    assert dead.any()
    assert found[dead].max() < 1e-20


def test_a_chosen_temper_has_no_certified_bound(task: Task) -> None:
    circuit = construct(task, target="bayes", temper=0.1).circuit
    assert circuit.bounds(task, torch.float64).posterior is None
    assert circuit.beta == pytest.approx(30)


def test_error_falls_with_temper_as_the_expansion_says(rng: torch.Generator) -> None:
    """First order with one first-layer head; for two lags, and with two heads, second order."""
    task = Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 60)
    two = Task(task.P, (1, 3), 60)
    tokens = sih.sample(task, 8, rng=rng).tokens

    def error(task: Task, temper: float, symmetric: bool) -> float:
        model = construct(task, target="bayes", temper=temper, symmetric=symmetric)
        return float(
            (third_layer(model, tokens) - sih.lag_posterior(tokens, task))[:, 2:].abs().max()
        )

    assert error(task, 1e-2, False) / error(task, 1e-3, False) == pytest.approx(10, rel=0.3)
    assert error(task, 1e-2, True) / error(task, 1e-3, True) == pytest.approx(100, rel=0.3)
    assert error(two, 1e-2, False) / error(two, 1e-3, False) == pytest.approx(100, rel=0.3)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("prior", [(0.7, 0.2, 0.1), (0.02, 0.08, 0.9)])
def test_a_prior_that_is_not_uniform_is_weighed_as_bayes_does(
    prior: tuple[float, ...], dtype: torch.dtype
) -> None:
    """Against Bayes' rule in plain loops: at the first positions the prior decides."""
    task = Task(sih.random_transition_matrix(3, rng=5), (1, 2, 3), 16, prior)
    tokens = sih.sample(task, 3, rng=6).tokens
    model = construct(task, target="bayes", dtype=dtype)
    found, closed = third_layer(model, tokens), circuit_weights(tokens, task, model.circuit)
    for sequence, row in enumerate(tokens.tolist()):
        for i in range(2, 16):
            terms = [
                p * math.prod(task.P[row[n - k], row[n]].item() for n in range(3, i + 1))
                for p, k in zip(prior, (1, 2, 3), strict=True)
            ]
            exact = torch.tensor(terms, dtype=torch.float64) / sum(terms)
            assert (found[sequence, i] - exact).abs().max() < 1e-3
            assert (closed[sequence, i] - exact).abs().max() < 1e-3
    assert sih.verify(model, task).ok


def test_heads_that_leave_offsets_out_have_no_certified_bound(task: Task) -> None:
    circuit = construct(
        task, target="bayes", dtype=torch.float32
    ).circuit  # nothing mixes in float32
    assert circuit is not None
    assert circuit.head_of_offset == (0, 1, 2)
    assert circuit.bounds(task, torch.float32).posterior is not None
    fewer = replace(circuit, head_of_offset=(0, 1, -1))
    assert fewer.bounds(task, torch.float32).posterior is None


def test_a_profile_is_taken_as_a_value() -> None:
    """What `reading="both"` is short for, and any other that somebody has."""
    task = Task([[0.8, 0.2], [0.3, 0.7]], (1, 3), 16)
    profile = sih.two_sided((1, 3), 16, 1)
    built = construct(task, target="bayes", profile=profile)
    assert built.circuit.profile == profile
    assert built.circuit.heads == 1
    assert sih.verify(built).max_error <= sih.verify(built).tolerance
    with pytest.raises(ValueError, match="leave heads and reading out"):
        construct(task, target="bayes", profile=profile, heads=1)
    with pytest.raises(ValueError, match=r"profile is for lags \(1, 3\) and length 16, not"):
        construct(task.with_length(20), target="bayes", profile=profile)
