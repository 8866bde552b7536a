from __future__ import annotations

import pytest
import torch
from support.small_configs import SMALL, small

from sih.training.config import TrainConfig
from sih.training.task_config import TaskConfig
from sih.training.trainer import Trainer


def test_a_matrix_instead_of_a_random_one() -> None:
    P = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3))
    assert small(matrix=P).task.build().P.tolist() == [list(row) for row in P]
    assert torch.equal(small(seed=1).task.build().P, SMALL.task.build().P)  # the matrix has a seed of its own
    assert not torch.equal(small(matrix_seed=1).task.build().P, SMALL.task.build().P)


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
    assert TrainConfig(states=100_000).task.outline().max_lag == 3
    with pytest.raises(ValueError, match="length must be"):
        TaskConfig(states=100_000, length=3)
    with pytest.raises(ValueError, match="a matrix of 100,000 states would take 480"):
        TaskConfig(states=100_000).build()
