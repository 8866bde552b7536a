from __future__ import annotations

import itertools

import pytest

import sih
from sih.claim import beta, beta_figure
from sih.predictors.averaged_kl import averaged_kl
from sih.training.runs.run_store import RunStore


def test_beta() -> None:
    settings = beta.BetaConfig(
        num_states=3,
        lags=(1, 2),
        lengths=(8, 16),
        betas=(0.001, 1e6),
        matrices=2,
        sequences=40,
        limit_sequences=40,
    )
    data = beta.compute(settings, RunStore())
    assert list(data.laws) == ["uniform", "dirichlet"]
    for found, j in itertools.product(data.laws.values(), range(2)):
        for kind in beta.EVIDENCES:
            low, high = found.selective[kind][j].tolist()
            assert high == pytest.approx(found.limit[j].item(), rel=1e-3, abs=1e-6)
            assert low > found.bma[j]
    figure = beta_figure.draw(data)
    assert [ax.get_ylim() for ax in figure.axes] == [(1e-4, 1)] * 4
    assert len(beta_figure.table(data)) == 5


def test_lines_are_of_more_sequences_the_curves_of_the_first() -> None:
    """ML by hand: on all sequences, averaged over the posterior of the lag."""
    settings = beta.BetaConfig(
        num_states=3, lags=(1, 2), lengths=(8,), betas=(1.0,), matrices=2, sequences=5,
        limit_sequences=30, laws=("uniform",),
    )  # fmt: skip
    found = beta.compute(settings, RunStore()).laws["uniform"]
    rng, each = settings.rng(), []
    for _ in range(2):
        task = sih.Task(sih.random_uniform(3, rng=rng), (1, 2), 8)
        tokens = sih.sample(task, 30, rng=rng).tokens
        law = sih.maximum_likelihood(tokens, task)
        each.append(averaged_kl(law, tokens, task)[:, 7].mean().item())
    assert found.ml.item() == pytest.approx(sum(each) / 2)
    with pytest.raises(ValueError, match="lengths must be above the largest lag, 3; got"):
        beta.BetaConfig(lengths=(3, 8))
