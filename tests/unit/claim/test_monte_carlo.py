"""Sampling agrees with the exact values, in both forms, and an experiment goes on where it stopped."""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

import sih
from sih.base.files import write_arrays
from sih.claim.exact import claim_expectations
from sih.claim.monte_carlo import (
    PAPER_LAGS,
    Form,
    MonteCarlo,
    estimates,
    load_estimates,
    printed,
    random_matrices,
    save_estimates,
    trimmed,
)

SMALL = MonteCarlo(num_states=4, matrices=3, lags=(1, 2, 5), sequences=50, length=20)


@pytest.mark.parametrize("form", ["printed", "trimmed"])
@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 4, 5, 6)])
def test_agrees_with_the_exact_values(
    form: Form, lags: tuple[int, ...], rng: torch.Generator
) -> None:
    P = sih.random_near_periodic(4, rng=rng, noise=0.2)
    if form == "printed":
        found = printed(P, lags, sequences=20_000, length=30, rng=rng)
    else:
        found = trimmed(P, lags, samples=20_000, rng=rng)
    z = (found.mean - claim_expectations(P, lags)) / found.error
    assert z.abs().max() < 4.5
    assert found.error.max() < 0.004


def test_error_bars_are_honest() -> None:
    """Over many matrices the deviations are as large as their standard errors say, no larger and no smaller."""
    experiment = replace(SMALL, matrices=300, sequences=200, lags=PAPER_LAGS[:4])
    exact = claim_expectations(random_matrices(4, 300, seed=0), experiment.lags)
    found = list(estimates(experiment))
    z = (torch.stack([e.mean for e in found]) - exact) / torch.stack([e.error for e in found])
    assert 0.9 < z.square().mean().sqrt() < 1.1
    assert 0.93 < (z.abs() < 2).double().mean() < 0.97


def test_matrices_do_not_depend_on_how_many_there_are() -> None:
    assert torch.equal(random_matrices(4, 3, seed=1), random_matrices(4, 7, seed=1)[:3])
    assert not torch.equal(random_matrices(4, 1, seed=1), random_matrices(4, 1, seed=2))


@pytest.mark.parametrize("form", ["printed", "trimmed"])
def test_stopped_and_resumed_is_the_same(form: Form, tmp_path: Path) -> None:
    experiment = replace(SMALL, form=form)
    whole = list(estimates(experiment))
    save_estimates(tmp_path, experiment, list(itertools.islice(estimates(experiment), 1)))
    done = load_estimates(tmp_path, experiment)
    assert len(done) == 1
    done += estimates(experiment, first=1)
    for a, b in zip(whole, done, strict=True):
        assert torch.equal(a.mean, b.mean)
        assert torch.equal(a.error, b.error)


def test_another_experiment_is_not_mixed_in(tmp_path: Path) -> None:
    save_estimates(tmp_path, SMALL, list(estimates(SMALL)))
    with pytest.raises(ValueError, match="holds another experiment"):
        load_estimates(tmp_path, replace(SMALL, seed=1))
    assert load_estimates(tmp_path / "elsewhere", SMALL) == []


def test_estimates_of_before_there_were_laws_go_on(tmp_path: Path) -> None:
    """A file that does not say a field is of its default."""
    done = list(estimates(SMALL))
    mean, error = (
        torch.stack([getattr(one, name) for one in done]).numpy() for name in ("mean", "error")
    )
    said = {name: value for name, value in asdict(SMALL).items() if name != "matrix_law"}
    write_arrays(
        tmp_path / "estimates.npz", experiment=json.dumps(said), mean=mean, standard_error=error
    )
    found = load_estimates(tmp_path, replace(SMALL, matrices=2))
    assert [one.mean.tolist() for one in found] == [one.mean.tolist() for one in done[:2]]
    with pytest.raises(ValueError, match="holds another experiment"):
        load_estimates(tmp_path, replace(SMALL, matrix_law="uniform"))


def test_the_law_of_the_matrices_is_that_asked_for(tmp_path: Path) -> None:
    uniform = replace(SMALL, matrix_law="uniform", sequences=20_000, matrices=2)
    P = random_matrices(4, 2, seed=0, law="uniform")
    done = list(estimates(uniform))
    z = (torch.stack([e.mean for e in done]) - claim_expectations(P, SMALL.lags)) / torch.stack(
        [e.error for e in done]
    )
    assert z.abs().max() < 4.5
    save_estimates(tmp_path, uniform, done)
    assert len(load_estimates(tmp_path, uniform)) == 2
    with pytest.raises(ValueError, match="holds another experiment"):
        load_estimates(tmp_path, replace(uniform, matrix_law="dirichlet"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"matrices": 0}, "matrices must be a whole number, at least 1"),
        ({"length": 5}, "above the largest lag, 5"),
        ({"form": "other"}, "printed, trimmed; got 'other'"),
        ({"lags": (2, 2)}, "increasing"),
        ({"matrix_law": "round"}, "law must be one of dirichlet, uniform"),
        ({"matrix_law": "uniform", "concentration": 2.0}, "the law uniform has no concentration"),
    ],
)
def test_bad_input(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)  # type: ignore[arg-type]
