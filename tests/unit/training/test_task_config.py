from __future__ import annotations

from typing import Any

import pytest
import torch
from support.small_configs import SMALL, small

from sih.task import FreshTask, SwitchingTask, Task
from sih.training.config import TrainConfig
from sih.training.config_file import digest, from_json, to_json, to_version_1
from sih.training.task_config import TaskConfig
from sih.training.trainer import Trainer


def test_a_matrix_instead_of_a_random_one() -> None:
    P = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3))
    assert small(matrix=P).task.steady().P.tolist() == [list(row) for row in P]
    assert torch.equal(
        small(seed=1).task.steady().P, SMALL.task.steady().P
    )  # the matrix has a seed of its own
    assert not torch.equal(small(matrix_seed=1).task.steady().P, SMALL.task.steady().P)


def test_the_law_of_a_matrix() -> None:
    config = small(matrix_law="uniform", matrix_seed=11)
    numbers = torch.rand(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(11))
    assert torch.allclose(
        config.task.steady().P, numbers / numbers.sum(dim=1, keepdim=True), rtol=1e-15, atol=0
    )
    trained, switching = (
        Trainer(config).task,
        small(matrix_law="uniform", matrix_seed=11, switch_rate=0.1).task.build(),
    )
    assert isinstance(trained, Task)
    assert isinstance(switching, SwitchingTask)
    assert torch.equal(trained.P, config.task.steady().P)
    assert torch.allclose(switching.P, config.task.steady().P, rtol=1e-15, atol=0)
    assert from_json(to_json(config)) == config
    assert config.task.is_paper_task
    assert digest(config) != digest(small(matrix_seed=11))


def test_the_usual_law_leaves_digests_as_they_were() -> None:
    assert digest(small(matrix_law="dirichlet")) == digest(SMALL)
    assert "matrix_law" not in to_version_1(SMALL)
    values = to_json(SMALL)
    del values["task"]["matrix_law"]  # as in a file of before
    assert from_json(values) == SMALL


def test_a_prior_over_lags_reaches_training_and_the_held_out_sequences() -> None:
    config = small(lag_prior=(0.999, 0.001), batch=400, held_out=400)
    trainer = Trainer(config)
    assert trainer.task.lag_prior.tolist() == pytest.approx([0.999, 0.001])
    assert (config.held_out_batch(trainer.task).lags == 1).float().mean() > 0.98
    state = trainer.rng.get_state()
    loss = trainer.advance().loss
    fair = Trainer(config.replace(lag_prior=None))
    fair.rng.set_state(state)
    assert fair.advance().loss != loss  # other sequences of the same random numbers


def test_a_large_matrix_is_drawn_only_when_it_is_asked_for() -> None:
    assert TrainConfig(states=100_000).task.first == 3
    with pytest.raises(ValueError, match="length must be"):
        TaskConfig(states=100_000, length=3)
    with pytest.raises(ValueError, match="a matrix of 100,000 states would take 480"):
        TaskConfig(states=100_000).build()


def test_tasks_beyond_the_paper_s_are_trained_on_and_judged_by_exact_bayes() -> None:
    """A run learns from its task and is measured against its Bayes average, which beats maximum likelihood."""
    for changes, kind in (({"fresh": True}, FreshTask), ({"switch_rate": 0.2}, SwitchingTask)):
        config = small(**changes, steps=2, batch=8, held_out=64)
        assert not config.task.is_paper_task
        trainer = Trainer(config)
        assert type(trainer.task) is kind
        *_, last = trainer
        assert last.evaluation is not None
        assert last.evaluation.bma_kl < last.evaluation.ml_kl
        assert from_json(to_json(config)) == config
        assert config.unusual().items() >= changes.items()
        assert digest(config) != digest(small(steps=2, batch=8, held_out=64))
    assert SMALL.task.is_paper_task
    assert (
        not {"fresh", "switch_rate"} & to_version_1(SMALL).keys()
    )  # names of runs are what they were


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"fresh": True, "switch_rate": 0.1},
            "fresh draws a matrix for each sequence of one lag; leave out switch_rate",
        ),
        ({"fresh": True, "states": 2, "matrix": ((0.9, 0.1), (0.5, 0.5))}, "leave out matrix"),
        ({"switch_rate": 2.0}, "switch_rate is the chance that the lag switches at a step, 0 to 1"),
        ({"matrix_law": "round"}, "matrix_law must be one of dirichlet, uniform, .*; got 'round'"),
        (
            {"matrix_law": "uniform", "concentration": 0.5},
            "the law uniform has no concentration: leave it out; got 0.5",
        ),
        ({"matrix_law": "uniform", "fresh": True}, "leave out fresh or matrix_law=uniform"),
        (
            {"matrix_law": "uniform", "states": 2, "matrix": ((0.9, 0.1), (0.5, 0.5))},
            "leave out matrix_law or matrix",
        ),
        ({"switch_rate": 0.1, "lag_prior": (0.5, 0.5)}, "lag_prior is of lags that stay"),
    ],
)
def test_what_does_not_go_together(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)
