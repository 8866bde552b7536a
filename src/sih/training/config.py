"""What is trained: a complete description of a run."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from sih.checks import check_choice, check_heads, check_sizes
from sih.markov import as_transition_matrix, random_transition_matrix
from sih.models.base import Model
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer
from sih.task import Batch, Task, check_lags, sample
from sih.training.recipes.harmonic_positions import draw_harmonic
from sih.training.recipes.tied_tables import SharedWeights

MODELS = ("standard", "disentangled")
SCHEDULES = ("constant", "cosine")
STORED = ("float32", "float16")
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

    Two departures from the paper's optimisation, with `init="harmonic"`; model, task and loss stay the paper's. The
    standard model's positions start as harmonics (`sih.training.recipes.harmonic_positions`), the disentangled model's
    weights are moved in coordinates that positions share (`sih.training.recipes.tied_tables`), both up to
    `max_period`. For the first `held` steps layer 1 and the readout keep to the parts they start with, and the layers
    between the first and the last stand still. `shorter`, pairs of a step and a length, draws shorter sequences at
    first: length 32 until step 1,000, say, is ((1000, 32),); a standard model's positions stay as drawn meanwhile, so
    that those not seen yet fit what is learned on the others.

    The trained weights are written as `stored` says; "float16" takes half the space.
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
    stored: str = "float32"

    def __post_init__(self) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        check_choice("model", self.model, MODELS)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("stored", self.stored, STORED)
        assign(self, "lags", check_lags(self.lags))
        assign(self, "heads", check_heads(self.heads))
        assign(self, "betas", tuple(self.betas))
        names = ("states", "length", "dim", "qk_dim", "max_period", "steps", "batch", "evaluate_every", "held_out")
        check_sizes(**{name: getattr(self, name) for name in names})
        if not 0 < self.learning_rate <= 1e30:
            raise ValueError(f"learning_rate is a positive number up to 1e30, e.g. 0.001; got {self.learning_rate!r}")
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
            if init == "harmonic":
                assert rng is not None
                return self.build_shared(rng).model
            return self._disentangled(init, rng)
        sizes = (self.states, self.length, self.dim, self.qk_dim, self.heads, self.mlp_dim)
        if init != "harmonic":
            return Transformer(*sizes, init=init, rng=rng)
        assert rng is not None
        model = Transformer(*sizes, init="zeros")
        draw_harmonic(model, self.max_period, rng)
        return model

    def build_shared(self, rng: torch.Generator, device: torch.device | str = "cpu") -> SharedWeights:
        """The disentangled model that `build` makes, with the tables that its weights are made from."""
        shared = SharedWeights(self._disentangled("zeros").to(device), self.max_period)
        shared.draw(rng)
        return shared

    def _disentangled(self, init: str, rng: torch.Generator | None = None) -> DisentangledTransformer:
        temperature = math.sqrt(self.qk_dim)
        return DisentangledTransformer(
            self.states, self.length, self.heads, temperature=temperature, init=init, rng=rng
        )

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


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
