from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.pictures import same

import sih
from sih.base.errors import FieldError
from sih.paper.over_matrices import MatricesConfig, panel_over_matrices, panels_over_matrices
from sih.results.curves import Compared

CONFIG = MatricesConfig(num_states=2, length=10, matrices=3, sequences=4)
PREDICTOR = Compared("predictor")


def test_a_panel_over_matrices_leaves_out_the_last_position() -> None:
    """What has no next token is drawn nowhere and counts in no mean, as in the panels of trained models."""
    seen: list[tuple[sih.Task, torch.Tensor]] = []

    def predict(tokens: torch.Tensor, task: sih.Task) -> dict[str, tuple[Compared, torch.Tensor]]:
        seen.append((task, tokens))
        law = sih.stationary_law(tokens, task)
        spoiled = law.clone()
        spoiled[:, -1] = torch.tensor([1.0, 0.0])
        return {"law": (PREDICTOR, law), "spoiled": (PREDICTOR, spoiled)}

    found = panel_over_matrices(CONFIG, (1, 2), "uniform", predict)
    assert len(seen) == 3
    assert same(found.kl["spoiled"], found.kl["law"])
    assert len(found.kl["law"].mean) == 9
    assert len(found.kl["law"].overall) == 3


def test_the_kl_is_averaged_over_the_lag_by_loops() -> None:
    """Over the exact posterior of the lag, on matrices of the distribution that is asked for."""
    drawn: list[tuple[sih.Task, torch.Tensor]] = []

    def predict(tokens: torch.Tensor, task: sih.Task) -> dict[str, tuple[Compared, torch.Tensor]]:
        drawn.append((task, tokens))
        return {"law": (PREDICTOR, sih.stationary_law(tokens, task))}

    found = panel_over_matrices(CONFIG, (1, 3), "uniform", predict).kl["law"]
    rng = torch.Generator().manual_seed(0)
    for (task, tokens), whole in zip(drawn, found.overall.tolist(), strict=True):
        assert torch.equal(task.P, sih.random_uniform(2, rng=rng))
        assert torch.equal(tokens, sih.sample(task, 4, rng=rng).tokens)
        pi, P = sih.stationary_distribution(task.P).tolist(), task.P.tolist()
        posterior, total = sih.lag_posterior(tokens, task).tolist(), 0.0
        for n, i in itertools.product(range(4), range(3, 9)):
            for weight, lag in zip(posterior[n][i], task.lags, strict=True):
                row = P[tokens[n, i - lag + 1]]
                kl = sum(a * math.log(a / b) for a, b in zip(row, pi, strict=True))
                total += weight * kl / 4 / 6
        assert whole == pytest.approx(total, rel=1e-9)


def test_a_panel_for_each_lag_set_and_distribution() -> None:
    def predict(tokens: torch.Tensor, task: sih.Task) -> dict[str, tuple[Compared, torch.Tensor]]:
        return {"law": (PREDICTOR, sih.stationary_law(tokens, task))}

    config = MatricesConfig(
        lag_sets=((1, 2), (1, 3)), num_states=2, length=10, matrices=2, sequences=2
    )
    panels = panels_over_matrices(config, predict)
    assert [panel.title for panel in panels] == [
        "lags {1,2}, uniform rows",
        "lags {1,2}, Dirichlet(1) rows",
        "lags {1,3}, uniform rows",
        "lags {1,3}, Dirichlet(1) rows",
    ]
    alone = panel_over_matrices(config, (1, 2), "dirichlet", predict)
    assert same(panels[1], alone)  # no distribution depends on another one being there


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"lag_sets": ((2, 1),)}, "lag_sets"),
        ({"lag_sets": ()}, "lag_sets"),
        ({"num_states": 1}, "num_states"),
        ({"matrices": 1}, "matrices"),
        ({"length": 5}, "length"),
        ({"laws": ("gamma",)}, "laws"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(fields: dict[str, object], field: str) -> None:
    with pytest.raises(FieldError) as refused:
        MatricesConfig(**fields)  # type: ignore[arg-type]
    assert refused.value.field.startswith(field)
