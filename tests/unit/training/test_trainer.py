from __future__ import annotations

import math
from typing import Any

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
    pi = sih.stationary_distribution(config.task.steady().P)
    for step in range(1, adam.steps + 1):
        batch = sih.sample(task, adam.batch, rng=rng)
        tokens = batch.tokens
        laws = model.predict(tokens)
        total = torch.zeros(())
        for row in range(adam.batch):
            for i in range(task.length - 1):
                drawn = torch.eye(task.num_states)[tokens[row, i + 1]]
                if config.target == "distribution":
                    known = i + 1 >= task.max_lag
                    parent = tokens[row, i + 1 - batch.lags[row]]
                    drawn = config.task.steady().P[parent] if known else pi
                total = total - (drawn * laws[row, i].log()).sum()
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
@pytest.mark.parametrize("target", ["sampled", "distribution"])
def test_training_is_adam_on_the_cross_entropy_of_fresh_batches(model: str, target: str) -> None:
    config = small(model=model, seed=4, target=target)
    losses, weights = plain_adam(config)
    *_, last = steps = list(train(config))
    assert [step.loss for step in steps[1:]] == pytest.approx(losses, rel=1e-5)
    for name, weight in last.model.named_parameters():
        assert (weight - weights[name]).abs().max() < 2e-5, name


def test_a_batch_that_no_machine_has_is_refused_before_anything_is_made() -> None:
    with pytest.raises(
        ValueError, match=r"the attention of 2,000,000,000 sequences of \d+ tokens would take"
    ):
        Trainer(small(batch=2_000_000_000))


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
    assert torch.equal(
        small(seed=1).task.steady().P, SMALL.task.steady().P
    )  # the matrix has a seed of its own
    assert not torch.equal(small(matrix_seed=1).task.steady().P, SMALL.task.steady().P)


@pytest.mark.parametrize(
    ("model", "init"),
    [
        *(("standard", init) for init in ("uniform", "gpt2", "embed")),
        *(("disentangled", init) for init in ("uniform", "harmonic", "small", "factors")),
    ],
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


TASKS: dict[str, dict[str, Any]] = {
    "known P": {},
    "fresh": {"fresh": True},
    "switching": {"switch_rate": 0.2},
}


@pytest.mark.parametrize("name", TASKS)
def test_both_targets_have_the_same_mean_gradient(name: str) -> None:
    """Along the direction in which a wrong target's mean gradient differs: five standard errors count as a difference.

    The wrong one is the distribution of the token after the next, and the direction is found on other batches. If the
    targets' gradients have the same mean, each of the three tests errs with probability 6e-7.
    """
    config = small(batch=32, concentration=0.2, **TASKS[name])
    task, rng = config.task.build(), torch.Generator().manual_seed(1)
    model = config.model.build(task.num_states, task.length, init="normal", rng=rng)
    weights = list(model.parameters())

    def gradient(batch: sih.Batch, laws: Tensor | None) -> Tensor:
        loss = sih.next_token_loss(model, batch.tokens, laws=laws)
        return torch.cat([grad.flatten() for grad in torch.autograd.grad(loss, weights)]).double()

    def differences(batches: int) -> tuple[Tensor, Tensor]:
        right, wrong = [], []
        for _ in range(batches):
            batch = sih.sample(task, config.optimiser.batch, rng=rng)
            sampled, laws = gradient(batch, None), sih.truth(batch, task)
            right.append(gradient(batch, laws) - sampled)
            wrong.append(gradient(batch, laws.roll(-1, dims=1)) - sampled)
        return torch.stack(right), torch.stack(wrong)

    direction = differences(40)[1].mean(dim=0)
    slopes = [found @ direction for found in differences(60)]
    right, wrong = (d.mean() / (d.std() / math.sqrt(len(d))) for d in slopes)
    assert abs(right) < 5
    assert wrong > 5


def test_the_speed_is_tokens_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.25])
    monkeypatch.setattr("sih.training.trainer.time.perf_counter", lambda: next(clock))
    config = small(batch=4, length=12)
    assert Trainer(config).advance().tokens_per_second == 4 * 12 / 0.25
