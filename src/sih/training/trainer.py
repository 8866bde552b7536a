r"""Training as in the paper (Sec. 6, "Setup"): fresh batches, cross-entropy, Adam.

The cross-entropy is over every next token, with the token as it was drawn or with its
true distribution (`target`).

`TrainConfig` (`sih.training.config`) describes a run. Its defaults are the paper's.
`train(config)` yields its steps. Nothing here prints or touches a file:
`sih.training.runs` stores the steps.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import check_device, check_kind, check_memory, generator
from sih.base.showing import Shown
from sih.base.stats import quotient
from sih.models import Model
from sih.models.loss import next_token_loss
from sih.predictors.metrics import kl_to_truth, mean_by_position
from sih.predictors.predictors import bma, maximum_likelihood, truth
from sih.task import Batch, CausalTask, sample
from sih.training.config import TrainConfig


@dataclass(frozen=True, eq=False)
class Evaluation(Shown):
    """KL at every position, averaged over the held-out sequences.

    It is that of the model, of maximum likelihood and of BMA.
    """

    model: Float[Tensor, " time"]
    ml: Float[Tensor, " time"]
    bma: Float[Tensor, " time"]
    first: int
    """The first token that has a parent, max_lag in a task with lags."""

    def _facts(self) -> Mapping[str, Any]:
        return {"mean_kl": self.mean_kl, "ml_kl": self.ml_kl, "bma_kl": self.bma_kl}

    @property
    def mean_kl(self) -> float:
        """Return the model's mean from `first` on, without the last position.

        The last position has no target.
        """
        return mean_by_position(self.model.tolist(), self.first)

    @property
    def kl_over_ml(self) -> float:
        """Return the model's mean KL divided by maximum likelihood's."""
        return quotient(self.mean_kl, self.ml_kl)

    @property
    def ml_kl(self) -> float:
        return mean_by_position(self.ml.tolist(), self.first)

    @property
    def bma_kl(self) -> float:
        return mean_by_position(self.bma.tolist(), self.first)


@dataclass(frozen=True, eq=False)
class Step(Shown):
    """The result of one update. `step` counts updates, this one included.

    `loss` is that of the update's batch, before the update. Step 0, before the first
    update, has no loss but an evaluation. `model` is the model itself, which later
    updates change.
    """

    step: int
    loss: float | None
    learning_rate: float
    tokens_per_second: float
    evaluation: Evaluation | None
    model: Model

    def _facts(self) -> Mapping[str, Any]:
        facts = {"step": self.step, "loss": self.loss, "learning_rate": self.learning_rate}
        return facts if self.evaluation is None else {**facts, "mean_kl": self.evaluation.mean_kl}


class DivergedError(ArithmeticError):
    """A loss that is no longer a finite number."""


class Trainer:
    """A run in progress: model, optimiser, generator, steps done.

    `state()` returns all of it, and `restore` sets it back. `path` is the model's
    backend, by default the fastest on this machine. The last digits of results depend
    on it.
    """

    def __init__(
        self, config: TrainConfig, device: torch.device | str = "cpu", path: str | None = None
    ) -> None:
        self.config, self.device, self.step = config, check_device(device), 0
        self.task: Any = config.task.build()  # a CausalTask
        batch = config.optimiser.batch
        maps = 4 * batch * sum(config.heads) * self.task.length**2
        check_memory(maps, f"the attention of {batch:,} sequences of {self.task.length:,} tokens")
        self.rng = generator(config.seed)
        self.start = config.recipe.start(config.model, self.task, self.rng, self.device)
        self.model = self.start.model
        self.path = path or self.model.usual_path()
        self.optimizer = config.optimiser.make(self.start.parameters.values())

    def __iter__(self) -> Iterator[Step]:
        if self.step == 0:
            yield Step(
                0, None, self.config.optimiser.rate(0), math.nan, self.evaluate(), self.model
            )
        while self.step < self.config.optimiser.steps:
            yield self.advance()

    def advance(self) -> Step:
        """Return the result of one update, on a fresh batch."""
        begin, config = time.perf_counter(), self.config
        rate = config.optimiser.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        task = self._tasks[config.recipe.length_at(self.step, self.task.length)]
        batch = sample(task, config.optimiser.batch, rng=self.rng)
        laws = truth(batch, task).to(self.device) if config.target == "distribution" else None
        tokens = batch.tokens.to(self.device)
        loss = next_token_loss(self.model, tokens, self.path, laws=laws)
        value = loss.item()
        if not math.isfinite(value):
            place = f"step {self.step + 1}, learning rate {rate:g}"
            raise DivergedError(f"the loss became {value} at {place}; try a smaller one")
        self.model.zero_grad()
        loss.backward()
        self.start.collect_gradients(self.step)
        self.optimizer.step()
        self.start.update_weights()
        self.step += 1
        speed = tokens.numel() / (time.perf_counter() - begin)
        due = (
            self.step % config.evaluation.evaluate_every == 0 or self.step == config.optimiser.steps
        )
        return Step(self.step, value, rate, speed, self.evaluate() if due else None, self.model)

    @torch.no_grad()
    def evaluate(self) -> Evaluation:
        """Return the evaluation of the current model on the held-out sequences."""
        batch, ml, best = self._reference
        parts = torch.split(batch.tokens.to(self.device), 64)  # a few at a time: bounded memory
        laws = torch.cat([self.model.predict(part, self.path).cpu() for part in parts]).to(
            torch.float64
        )
        return Evaluation(
            kl_to_truth(laws, batch, self.task).mean(dim=0), ml, best, self.config.task.first
        )

    @cached_property
    def _tasks(self) -> dict[int, CausalTask]:
        """Return the task by the length of its sequences."""
        task = self.task
        lengths = [length for _, length in self.config.recipe.length_schedule or ()]
        shorter = {length: task.with_length(length) for length in lengths}
        return {**shorter, task.length: task}

    @cached_property
    def _reference(self) -> tuple[Batch, Float[Tensor, " time"], Float[Tensor, " time"]]:
        batch = self.config.held_out_batch(self.task)
        laws = (predictor(batch.tokens, self.task) for predictor in (maximum_likelihood, bma))
        ml, best = (kl_to_truth(law, batch, self.task).mean(dim=0) for law in laws)
        return batch, ml, best

    def state(self) -> dict[str, Tensor]:
        """Return all that later steps depend on, as named tensors on the CPU."""
        found = {
            "generator": self.rng.get_state(),
            "step": torch.tensor(self.step),
            **self._moving(),
        }
        return {name: value.detach().cpu().contiguous().clone() for name, value in found.items()}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore weights, optimiser and generator from a saved state.

        The state must be of the same configuration.
        """
        own = self.state()
        for name in own.keys() | state.keys():
            fits = name in own and name in state and own[name].dtype == state[name].dtype
            if not fits or own[name].shape != state[name].shape:
                raise ValueError(f"the state is not of this configuration: {name!r} does not fit")
        self.rng.set_state(state["generator"])
        self.step = int(state["step"])
        for name, value in self._moving().items():
            value.copy_(state[name])

    def _moving(self) -> dict[str, Tensor]:
        """Return everything that training changes, by name.

        This is the weights, the tables they are made from, and the optimiser's state.
        """
        weights, moves, optimiser = (
            dict(self.model.named_parameters()),
            self.start.parameters,
            self.config.optimiser.name,
        )
        found: dict[str, Tensor] = {f"model/{name}": weight for name, weight in weights.items()}
        found |= {f"table/{name}": table for name, table in moves.items() if name not in weights}
        for name, weight in moves.items():
            found |= {
                f"{optimiser}/{key}/{name}": value
                for key, value in self.optimizer.state[weight].items()
            }
        return found


def train(
    config: TrainConfig | None = None, device: torch.device | str = "cpu", **fields: Any
) -> Iterator[Step]:
    """Train a model and yield the steps. The last step's `model` is the result.

    Args:
        config: the configuration. Default: the paper's setting, with the changes in
            `fields`.
        device: the device for the computation.
        fields: changes of the configuration by flat name, as in `TrainConfig`. `task`
            may be any task of one's own: sih.train(task=task, heads=(1, 3, 1),
            steps=2000).

    Yields:
        Steps, from step 0 before the first update. Each has the loss, and some an
        evaluation.

    >>> config = TrainConfig(lags=(1, 2), length=8, heads=(1, 1), dim=8, qk_dim=4, batch=4, held_out=8)
    >>> [step.step for step in train(config, steps=3)]
    [0, 1, 2, 3]
    """
    wanted = (
        "a TrainConfig, e.g. sih.train(sih.TrainConfig(lags=(1, 3), length=64, steps=2000)); "
        "a task is given by name, sih.train(task=...)"
    )
    check_kind("config", config, (TrainConfig, type(None)) if fields else TrainConfig, wanted)
    config = TrainConfig() if config is None else config
    return iter(Trainer(config.replace(**fields), device))
