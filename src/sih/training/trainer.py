r"""Training as in the paper (Sec. 6, "Setup"): a fresh batch at every step, cross-entropy on every next token, Adam.

`TrainConfig` (`sih.training.config`) describes a run, its defaults are the paper's; `train(config)` yields its steps.
Nothing here prints or touches a file: `sih.runs.run` keeps what is yielded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from sih.metrics import kl_to_truth
from sih.models.base import Model as Model
from sih.models.loss import next_token_loss
from sih.models.standard.transformer import Transformer
from sih.predictors import bma, maximum_likelihood
from sih.task import Batch, sample
from sih.training.config import TrainConfig as TrainConfig
from sih.training.recipes.harmonic_positions import hold
from sih.training.recipes.tied_tables import SharedWeights


@dataclass(frozen=True, eq=False)
class Evaluation:
    """KL to the true law on the held-out sequences, averaged over them at every position: the model's, and there too
    maximum likelihood's and the Bayesian model average's."""

    model: Float[Tensor, " time"]
    ml: Float[Tensor, " time"]
    bma: Float[Tensor, " time"]
    max_lag: int

    @property
    def mean_kl(self) -> float:
        """The model's mean over the positions past the first max_lag."""
        return self.model[self.max_lag :].mean().item()

    @property
    def ml_kl(self) -> float:
        return self.ml[self.max_lag :].mean().item()

    @property
    def bma_kl(self) -> float:
        return self.bma[self.max_lag :].mean().item()


@dataclass(frozen=True, eq=False)
class Step:
    """What one update did. `step` counts updates, this one included; the loss is that of its batch, before it.

    Step 0, before the first update, has no loss but an evaluation. `model` is the model itself, which goes on
    changing.
    """

    step: int
    loss: float | None
    learning_rate: float
    tokens_per_second: float
    evaluation: Evaluation | None
    model: Model


class DivergedError(ArithmeticError):
    """The loss is no longer a finite number."""


class Trainer:
    """A run in progress: model, optimiser, generator, steps done. `state()` is all of it, `restore` goes back to it."""

    def __init__(self, config: TrainConfig, device: torch.device | str = "cpu") -> None:
        self.config, self.device, self.step = config, check_device(device), 0
        self.task = config.task()
        self._tasks = {length: self.task.with_length(length) for _, length in config.shorter}
        self._tasks[config.length] = self.task
        self.rng = torch.Generator().manual_seed(config.seed)
        self.shared: SharedWeights | None = None
        if config.init == "harmonic" and config.model == "disentangled":
            self.shared = config.build_shared(self.rng, self.device)
            self.model: Model = self.shared.model
        else:
            self.model = config.build(self.rng).to(self.device)
        self.moving = dict(self.model.named_parameters()) if self.shared is None else self.shared.tables
        """What Adam moves, by name: the model's weights, or their tables."""
        self.optimizer = torch.optim.Adam(self.moving.values(), lr=config.learning_rate, betas=config.betas)
        for weight in self.moving.values():  # what Adam would make at its first step, so that step 0 has a state too
            moments = {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
            self.optimizer.state[weight] = {"step": torch.zeros(()), **moments}

    def __iter__(self) -> Iterator[Step]:
        if self.step == 0:
            yield Step(0, None, self.config.rate(0), math.nan, self.evaluate(), self.model)
        while self.step < self.config.steps:
            yield self.advance()

    def advance(self) -> Step:
        """One update, on a fresh batch."""
        begin, config = time.perf_counter(), self.config
        rate = config.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        task = self._tasks[config.length_at(self.step)]
        tokens = sample(task, config.batch, rng=self.rng).tokens.to(self.device)
        loss = next_token_loss(self.model, tokens)
        value = loss.item()
        if not math.isfinite(value):
            raise DivergedError(
                f"the loss became {value} at step {self.step + 1}, learning rate {rate:g}; try a smaller one"
            )
        self.model.zero_grad()
        loss.backward()
        self._prepare_gradients()
        self.optimizer.step()
        if self.shared is not None:
            self.shared.spread()
        self.step += 1
        speed = tokens.numel() / (time.perf_counter() - begin)
        due = self.step % config.evaluate_every == 0 or self.step == config.steps
        return Step(self.step, value, rate, speed, self.evaluate() if due else None, self.model)

    def _prepare_gradients(self) -> None:
        """The tables' gradients, if there are tables; none for what does not move yet: its moments are 0 too, so
        that Adam leaves it alone."""
        config, model = self.config, self.model
        if self.shared is not None:
            self.shared.gather()
            if self.step < config.held:
                self.shared.hold()
        elif config.init == "harmonic" and isinstance(model, Transformer):
            if config.length_at(self.step) < config.length:
                model.position.grad = None
            if self.step < config.held:
                hold(model, config.max_period)

    @torch.no_grad()
    def evaluate(self) -> Evaluation:
        batch, ml, best = self._reference
        parts = torch.split(batch.tokens.to(self.device), 64)  # a few at a time: bounded memory
        laws = torch.cat([self.model.predict(part).cpu() for part in parts]).to(torch.float64)
        return Evaluation(kl_to_truth(laws, batch, self.task).mean(dim=0), ml, best, self.task.max_lag)

    @cached_property
    def _reference(self) -> tuple[Batch, Float[Tensor, " time"], Float[Tensor, " time"]]:
        batch = self.config.held_out_batch(self.task)
        ml, best = (
            kl_to_truth(predictor(batch.tokens, self.task), batch, self.task).mean(dim=0)
            for predictor in (maximum_likelihood, bma)
        )
        return batch, ml, best

    def state(self) -> dict[str, Tensor]:
        """Model, optimiser and generator as named tensors on the CPU; with `step`, all that the future depends on."""
        found = {"generator": self.rng.get_state(), "step": torch.tensor(self.step)}
        found |= {f"model/{name}": weight.detach() for name, weight in self.model.named_parameters()}
        if self.shared is not None:
            found |= {f"table/{name}": table.detach() for name, table in self.shared.tables.items()}
        for name, weight in self.moving.items():
            found |= {f"adam/{moment}/{name}": value for moment, value in self.optimizer.state[weight].items()}
        return {name: value.cpu().contiguous().clone() for name, value in found.items()}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Go back to a state of this same configuration."""
        own = self.state()
        for name in own.keys() | state.keys():
            if name not in own or name not in state or own[name].shape != state[name].shape:
                raise ValueError(f"the state is not of this configuration: {name!r} does not fit")
        self.rng.set_state(state["generator"])
        self.step = int(state["step"])
        kept = [("model", dict(self.model.named_parameters()))]
        kept += [] if self.shared is None else [("table", self.shared.tables)]
        for kind, weights in kept:
            for name, weight in weights.items():
                weight.copy_(state[f"{kind}/{name}"])
        for name, weight in self.moving.items():
            for moment, value in self.optimizer.state[weight].items():
                value.copy_(state[f"adam/{moment}/{name}"])


def train(config: TrainConfig, device: torch.device | str = "cpu") -> Iterator[Step]:
    """The steps of a run, one after the other; the last one's `model` is the result.

    >>> config = TrainConfig(lags=(1, 2), length=8, heads=(1, 1), dim=8, qk_dim=4, steps=3, batch=4, held_out=8)
    >>> [step.step for step in train(config)]
    [0, 1, 2, 3]
    """
    return iter(Trainer(config, device))


def check_device(device: torch.device | str) -> torch.device:
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ValueError(f"device is cpu, or cuda where there is one; cannot compute on {str(device)!r}") from None
    return found
