"""The sequences that a run is measured on are none of those that it is trained on."""

from __future__ import annotations

import itertools

import pytest
import torch

import sih
from sih.training.config import TrainConfig
from sih.training.trainer import Trainer

BATCHES = 25


def rows(batch: sih.Batch) -> list[bytes]:
    return [row.tobytes() for row in batch.tokens.to(torch.uint8).numpy()]


@pytest.mark.parametrize("matrix_seed", [0, 5])
@pytest.mark.parametrize("init", ["uniform", "harmonic"])
def test_no_held_out_sequence_is_in_the_first_batches(matrix_seed: int, init: str) -> None:
    """Nor in a user's batches. One of these runs starts from the generator's state that draws what is held out."""
    configs = [
        TrainConfig(seed=seed, matrix_seed=matrix_seed, init=init, length=64, batch=512, dim=30)
        for seed in range(8)
    ]
    task = configs[0].task.build()
    held_out = rows(configs[0].held_out_batch(task))
    assert len(set(held_out)) == 512
    trained = set[bytes]()
    for config in configs:
        rng = Trainer(config).rng
        trained.update(row for _ in range(BATCHES) for row in rows(sih.sample(task, 512, rng=rng)))
        users = sih.FreshBatches(task, 512, rng=config.seed)
        trained.update(row for batch in itertools.islice(users, BATCHES) for row in rows(batch))
    assert len(trained) == 2 * 8 * BATCHES * 512
    assert trained.isdisjoint(held_out)


def test_what_a_run_is_trained_on_is_drawn_so() -> None:
    """The oracle of the test above draws what `advance` draws."""
    config = TrainConfig(
        lags=(1, 2),
        states=3,
        length=12,
        heads=(1, 1),
        dim=8,
        qk_dim=4,
        batch=5,
        steps=2,
        held_out=3,
    )
    trainer, other = Trainer(config), Trainer(config)
    trainer.advance()
    sih.sample(trainer.task, 5, rng=other.rng)
    assert torch.equal(trainer.rng.get_state(), other.rng.get_state())


def test_runs_of_seeds_that_torch_takes_for_one_are_two() -> None:
    """Nor does a large seed of the matrix give that of a small one."""
    small, large = (TrainConfig(seed=seed, length=16, dim=8, heads=(1,)) for seed in (3, 2**32 + 3))
    one, other = (Trainer(config) for config in (small, large))
    assert not torch.equal(one.model.get_parameter("token"), other.model.get_parameter("token"))
    assert not torch.equal(
        TrainConfig(matrix_seed=2**32).task.steady().P, TrainConfig().task.steady().P
    )
