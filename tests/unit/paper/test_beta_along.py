"""Fig. 3 (right): the estimator at the paper's six betas, against the definition, on the paper's axes."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest
import torch
from matplotlib.colors import to_hex
from support.pictures import check_drawn_from_file

import sih
from sih.paper import beta_along, beta_along_figure
from sih.results.experiment import Seeded
from sih.training.runs.run_store import RunStore

SMALL = beta_along.BetaAlongConfig(
    num_states=3, length=20, matrices=2, sequences=6, betas=(1.0, 25.0)
)


def by_loops(task: sih.Task, tokens: torch.Tensor, beta: float) -> float:
    """The KL of Prop. 1 with the mean of the normalised probabilities, averaged over the posterior."""
    P, s, first = task.P.tolist(), tokens.tolist(), task.lags[-1]
    posterior, total, count = sih.lag_posterior(tokens, task).tolist(), 0.0, 0
    for n, i in itertools.product(range(len(s)), range(first, len(s[0]) - 1)):
        scores = []
        for lag in task.lags:
            shares = [
                P[s[n][j - lag]][s[n][j]] / sum(P[s[n][j - other]][s[n][j]] for other in task.lags)
                for j in range(first, i + 1)
            ]
            scores.append(math.exp(beta * sum(shares) / len(shares)))
        rows = [P[s[n][i - lag + 1]] for lag in task.lags]
        law = [
            sum(w * row[b] for w, row in zip(scores, rows, strict=True)) / sum(scores)
            for b in range(task.num_states)
        ]
        for weight, row in zip(posterior[n][i], rows, strict=True):
            total += weight * sum(a * math.log(a / b) for a, b in zip(row, law, strict=True))
        count += 1
    return total / count


def test_the_estimator_at_each_beta_by_loops() -> None:
    (panel,) = beta_along.compute(SMALL, RunStore()).panels
    rng = Seeded().rng()
    for number in range(2):
        task = sih.Task(sih.random_uniform(3, rng=rng), (1, 2, 3), 20)
        tokens = sih.sample(task, 6, rng=rng).tokens
        for beta in SMALL.betas:
            found = panel.kl[beta_along.label_of(beta)].overall[number].item()
            assert found == pytest.approx(by_loops(task, tokens, beta), rel=1e-9)


def test_the_papers_curves_on_the_papers_axes() -> None:
    usual = beta_along.EXPERIMENT.config
    assert (usual.lag_sets, usual.laws, usual.length) == (((1, 2, 3),), ("uniform",), 128)
    data = beta_along.compute(dataclasses.replace(usual, matrices=2, sequences=4), RunStore())
    check_drawn_from_file(beta_along_figure.draw, data)
    figure = beta_along_figure.draw(data)
    (ax,) = figure.axes
    assert (ax.get_xlim(), ax.get_ylim()) == ((0, 128), (1e-4, 1))
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["BMA", "ML", *(f"β = {beta}" for beta in (1, 2, 5, 10, 25, 100))]
    assert len({to_hex(line.get_color()) for line in ax.lines}) == 8  # no two curves alike
    assert "cut at 1e-4" in beta_along_figure.caption(usual)
