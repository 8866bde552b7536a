r"""Training as in the paper (Sec. 6, "Setup"): a fresh batch at every step, cross-entropy on every next token, Adam.

`TrainConfig` is a complete description of a run and its defaults are the paper's; `train(config)` yields its steps.
Nothing here prints or touches a file: `sih.runs` keeps what is yielded.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.markov import as_transition_matrix, random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.models.checks import check_choice, check_heads, check_sizes
from sih.models.disentangled import DisentangledTransformer
from sih.models.loss import next_token_loss
from sih.models.positions import draw_harmonic, forbidden, parts
from sih.models.standard import Transformer
from sih.predictors import bma, maximum_likelihood
from sih.task import Batch, Task, check_lags, sample

Model = Transformer | DisentangledTransformer
MODELS = ("standard", "disentangled")
SCHEDULES = ("constant", "cosine")
HELD_OUT_SEED = 2**40
"""Added to `matrix_seed`, the seed of the held-out sequences: far from the seeds people choose for training."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything a run's result depends on, apart from the machine; the defaults are the paper's.

    The matrix is drawn with Dirichlet(`concentration`) rows from `matrix_seed`, or given as `matrix`. Initial weights
    and batches come from `seed`. The learning rate rises linearly over `warmup` steps, then is constant or falls
    along a cosine to 0 at the last step. Every `evaluate_every` steps, and after the last, the model is measured on
    `held_out` sequences that are the same throughout. `dim`, `qk_dim` and `mlp_dim` are the standard model's;
    the disentangled one uses sqrt(qk_dim) as its temperature, as the standard one does.

    Two departures from the paper's optimisation, for the standard model with `init="harmonic"`
    (`sih.models.positions`); model, task and loss stay the paper's. For the first `held` steps tokens, readout and
    layer 1 keep to the parts they start with, and the layers between the first and the last stand still. `shorter`,
    pairs of a step and a length, draws shorter sequences at first: length 32 until step 1,000, say, is ((1000, 32),);
    positions stay as drawn meanwhile, so that those not seen yet fit what is learned on the others.
    """

    model: str = "standard"
    lags: tuple[int, ...] = (1, 2, 3)
    states: int = 5
    length: int = 128
    heads: tuple[int, ...] = (1, 3, 1)
    dim: int = 64
    qk_dim: int = 32
    mlp_dim: int | None = None
    init: str = "uniform"
    max_period: int = 8
    steps: int = 10_000
    batch: int = 256
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    schedule: str = "constant"
    warmup: int = 0
    held: int = 0
    shorter: tuple[tuple[int, int], ...] = ()
    seed: int = 0
    matrix_seed: int = 0
    concentration: float = 1.0
    matrix: tuple[tuple[float, ...], ...] | None = None
    evaluate_every: int = 250
    held_out: int = 512

    def __post_init__(self) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        check_choice("model", self.model, MODELS)
        check_choice("schedule", self.schedule, SCHEDULES)
        assign(self, "lags", check_lags(self.lags))
        assign(self, "heads", check_heads(self.heads))
        assign(self, "betas", tuple(self.betas))
        names = ("states", "length", "dim", "qk_dim", "max_period", "steps", "batch", "evaluate_every", "held_out")
        check_sizes(**{name: getattr(self, name) for name in names})
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ValueError(f"learning_rate is a positive number, e.g. 0.001; got {self.learning_rate!r}")
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas are two numbers from 0 to below 1, e.g. (0.9, 0.999); got {self.betas!r}")
        if not 0 <= self.warmup <= self.steps:
            raise ValueError(f"warmup is a number of steps, 0 to {self.steps}; got {self.warmup!r}")
        if not 0 <= self.held <= self.steps or (self.held and len(self.heads) < 2):
            raise ValueError(f"held is a number of steps, 0 to {self.steps}, of two layers or more; got {self.held!r}")
        self._check_shorter()
        for name in ("seed", "matrix_seed"):
            if not 0 <= getattr(self, name) < 2**62:
                raise ValueError(f"{name} is a whole number from 0 to 2**62 - 1; got {getattr(self, name)!r}")
        if self.matrix is not None:
            P = as_transition_matrix(self.matrix)
            assign(self, "matrix", tuple(tuple(row) for row in P.tolist()))
            if P.shape[0] != self.states:
                raise ValueError(f"states={self.states} does not fit the matrix, which has {P.shape[0]} states")
        self.task()
        self.build(torch.Generator())

    def _check_shorter(self) -> None:
        untils, lengths = [0, *(until for until, _ in self.shorter)], [length for _, length in self.shorter]
        rising = all(a < b for a, b in itertools.pairwise(untils)) and untils[-1] <= self.steps
        if not rising or any(not self.lags[-1] < length < self.length for length in lengths):
            raise ValueError(
                f"shorter is pairs of a step (rising, at most {self.steps}) and a length ({self.lags[-1] + 1} to "
                f"{self.length - 1}) until then, e.g. (1000, 32); got {self.shorter!r}"
            )

    def length_at(self, step: int) -> int:
        """Tokens in the sequences of the update that follows `step` others."""
        return next((length for until, length in self.shorter if step < until), self.length)

    def task(self) -> Task:
        if self.matrix is not None:
            return Task(self.matrix, self.lags, self.length)
        rng = torch.Generator().manual_seed(self.matrix_seed)
        P = random_transition_matrix(self.states, rng=rng, concentration=self.concentration)
        return Task(P, self.lags, self.length)

    def build(self, rng: torch.Generator | None = None) -> Model:
        """The model before its first step, drawn from `rng`; without one, only its shape matters and it is zero."""
        init = "zeros" if rng is None else self.init
        if self.model == "disentangled":
            temperature = math.sqrt(self.qk_dim)
            return DisentangledTransformer(
                self.states, self.length, self.heads, temperature=temperature, init=init, rng=rng
            )
        sizes = (self.states, self.length, self.dim, self.qk_dim, self.heads, self.mlp_dim)
        if init != "harmonic":
            return Transformer(*sizes, init=init, rng=rng)
        assert rng is not None
        model = Transformer(*sizes, init="zeros")
        draw_harmonic(model, self.max_period, rng)
        return model

    def held_out_batch(self, task: Task) -> Batch:
        """The sequences that the model is measured on; the same for all runs on one task."""
        return sample(task, self.held_out, rng=torch.Generator().manual_seed(HELD_OUT_SEED + self.matrix_seed))

    def rate(self, step: int) -> float:
        """The learning rate of the update that follows `step` others."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        fall = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return self.learning_rate * rise * fall

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, words and lists; `TrainConfig.from_dict` reads it back."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainConfig:
        known = {field.name for field in fields(cls)}
        unknown = sorted(values.keys() - known)
        if unknown:
            raise ValueError(f"a training configuration has no field {unknown[0]!r}; it has {', '.join(sorted(known))}")
        return cls(**{name: _frozen(value) for name, value in values.items()})


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
        self.config, self.device, self.step = config, torch.device(device), 0
        self.task = config.task()
        self._tasks = {length: self.task.with_length(length) for _, length in config.shorter}
        self._tasks[config.length] = self.task
        self.rng = torch.Generator().manual_seed(config.seed)
        self.model = config.build(self.rng).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.learning_rate, betas=config.betas)
        for weight in self.model.parameters():  # what Adam would make at its first step, so that step 0 has a state too
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
        self.optimizer.zero_grad()
        loss.backward()
        self._hold_still()
        self.optimizer.step()
        self.step += 1
        speed = tokens.numel() / (time.perf_counter() - begin)
        due = self.step % config.evaluate_every == 0 or self.step == config.steps
        return Step(self.step, value, rate, speed, self.evaluate() if due else None, self.model)

    def _hold_still(self) -> None:
        """No gradient for what does not move yet; its moments are 0 too, so Adam leaves it alone."""
        config, model = self.config, self.model
        if config.init != "harmonic" or not isinstance(model, Transformer):
            return
        if config.length_at(self.step) < config.length:
            model.position.grad = None
        if self.step < config.held:
            _, output, tokens = parts(config.dim, config.max_period)
            for weight, rows in forbidden(model, config.max_period):
                _grad(weight)[..., rows, :] = 0
            _grad(model.token)[:, : tokens.start] = 0
            _grad(model.readout)[:, : output.start] = 0
            _grad(model.readout)[:, output.stop :] = 0
            for layer in model.each_layer()[1:-1]:
                for weight in layer.parameters():
                    weight.grad = None

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
        for name, weight in self.model.named_parameters():
            found[f"model/{name}"] = weight.detach()
            for moment, value in self.optimizer.state[weight].items():
                found[f"adam/{moment}/{name}"] = value
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
        for name, weight in self.model.named_parameters():
            weight.copy_(state[f"model/{name}"])
            for moment, value in self.optimizer.state[weight].items():
                value.copy_(state[f"adam/{moment}/{name}"])


def train(config: TrainConfig, device: torch.device | str = "cpu") -> Iterator[Step]:
    """The steps of a run, one after the other; the last one's `model` is the result.

    >>> config = TrainConfig(lags=(1, 2), length=8, heads=(1, 1), dim=8, qk_dim=4, steps=3, batch=4, held_out=8)
    >>> [step.step for step in train(config)]
    [0, 1, 2, 3]
    """
    return iter(Trainer(config, device))


def mean_kl_of(model: Model, batch: Batch, task: Task) -> Float[Tensor, " batch"]:
    """Each sequence's mean KL past max_lag under a model's predictions."""
    with torch.no_grad():
        return mean_kl(kl_to_truth(model.predict(batch.tokens), batch, task), task)


def _grad(weight: Tensor) -> Tensor:
    assert weight.grad is not None
    return weight.grad


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
