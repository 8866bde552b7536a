from __future__ import annotations

import math

import pytest
import torch
from support.small_configs import SMALL, small
from torch import Tensor

import sih
from sih.training.config import TrainConfig
from sih.training.optimiser import Adam
from sih.training.trainer import DivergedError, Trainer, train


def plain_adam(config: TrainConfig) -> tuple[list[float], dict[str, Tensor]]:
    """The paper's loop in the open: Kingma and Ba's Algorithm 1, cross-entropy by the definition."""
    rng = torch.Generator().manual_seed(config.seed)
    task, adam = config.task.build(), config.optimiser
    model = config.model.build(task.num_states, task.length, init="uniform", rng=rng)
    assert isinstance(adam, Adam)
    weights = dict(model.named_parameters())
    first = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    second = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    losses = []
    for step in range(1, adam.steps + 1):
        tokens = sih.sample(task, adam.batch, rng=rng).tokens
        laws = model.predict(tokens)
        total = torch.zeros(())
        for row in range(adam.batch):
            for i in range(task.length - 1):
                total = total - laws[row, i, tokens[row, i + 1]].log()
        loss = total / (adam.batch * (task.length - 1))
        grads = torch.autograd.grad(loss, list(weights.values()))
        losses.append(loss.item())
        b1, b2 = adam.betas
        with torch.no_grad():
            for (name, weight), grad in zip(weights.items(), grads, strict=True):
                first[name] = b1 * first[name] + (1 - b1) * grad
                second[name] = b2 * second[name] + (1 - b2) * grad**2
                m, v = first[name] / (1 - b1**step), second[name] / (1 - b2**step)
                weight.sub_(adam.learning_rate * m / (v.sqrt() + 1e-8))
    return losses, {name: weight.detach() for name, weight in weights.items()}


@pytest.mark.parametrize("model", ["standard", "disentangled"])
def test_training_is_adam_on_the_cross_entropy_of_fresh_batches(model: str) -> None:
    config = small(model=model, seed=4)
    losses, weights = plain_adam(config)
    *_, last = steps = list(train(config))
    assert [step.loss for step in steps[1:]] == pytest.approx(losses, rel=1e-5)
    for name, weight in last.model.named_parameters():
        assert (weight - weights[name]).abs().max() < 2e-5, name


def test_steps_and_evaluations() -> None:
    steps = list(train(SMALL))
    assert [step.step for step in steps] == list(range(7))
    assert [step.step for step in steps if step.evaluation] == [0, 4, 6]
    assert steps[0].loss is None
    last = steps[-1].evaluation
    assert last is not None
    task = SMALL.task.build()
    batch = SMALL.held_out_batch(task)
    for found, law in (
        (last.mean_kl, steps[-1].model.predict(batch.tokens)),
        (last.ml_kl, sih.maximum_likelihood(batch.tokens, task)),
        (last.bma_kl, sih.bma(batch.tokens, task)),
    ):
        kl = sih.kl_to_truth(law.detach().double(), batch, task)
        assert found == pytest.approx(sih.mean_kl(kl, task).mean().item(), rel=1e-6)


def test_training_learns() -> None:
    config = small(steps=150, learning_rate=1e-2, batch=32, held_out=64)
    found = [step.evaluation.mean_kl for step in train(config) if step.evaluation]
    assert found[-1] < 0.5 * found[0]


def test_same_seed_same_bits_and_another_seed_others() -> None:
    def final(config: TrainConfig) -> Tensor:
        *_, last = train(config)
        return torch.cat([weight.detach().flatten() for weight in last.model.parameters()])

    assert torch.equal(final(SMALL), final(SMALL))
    assert not torch.equal(final(SMALL), final(small(seed=1)))
    assert torch.equal(small(seed=1).task.steady().P, SMALL.task.steady().P)  # the matrix has a seed of its own
    assert not torch.equal(small(matrix_seed=1).task.steady().P, SMALL.task.steady().P)


@pytest.mark.parametrize(
    ("model", "init"), [("standard", "uniform"), ("disentangled", "uniform"), ("disentangled", "harmonic")]
)
def test_a_restored_trainer_goes_on_bit_for_bit(model: str, init: str) -> None:
    config = small(model=model, init=init, schedule="cosine", warmup=2)
    whole = Trainer(config)
    for _ in range(3):
        whole.advance()
    state = whole.state()
    other = Trainer(config)
    other.restore(state)
    for _ in range(3):
        assert whole.advance().loss == other.advance().loss
    for (name, a), b in zip(whole.state().items(), other.state().values(), strict=True):
        assert torch.equal(a, b), name


def test_a_state_is_a_copy_and_must_fit() -> None:
    trainer = Trainer(SMALL)
    state = trainer.state()
    trainer.advance()
    assert not torch.equal(state["model/readout"], trainer.state()["model/readout"])
    with pytest.raises(ValueError, match="does not fit"):
        Trainer(small(dim=10)).restore(state)


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    trainer = Trainer(SMALL)
    with torch.no_grad():
        trainer.model.get_parameter("readout")[0, 0] = math.nan
    with pytest.raises(DivergedError, match=r"step 1, learning rate 0\.001"):
        trainer.advance()
    assert trainer.step == 0
