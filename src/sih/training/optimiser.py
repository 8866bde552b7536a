"""The part of a training configuration that says how weights are moved, and the table of ways, `OPTIMISERS`."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from sih.checks import (
    FieldError,
    check_choice,
    check_kind,
    check_number,
    check_positive,
    check_sizes,
    check_steps,
    described,
    plain_float,
)
from sih.training.soap import Soap

SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True)
class Optimiser(ABC):
    """Says how many updates there are, of which size and on how many sequences. The defaults are the paper's."""

    name: ClassVar[str]

    steps: int = 10_000
    """updates."""
    batch: int = 256
    """sequences in a batch, drawn afresh at every step."""
    learning_rate: float = 1e-3
    """size of an update."""
    schedule: str = "constant"
    """constant, or cosine: the learning rate falls along a cosine to 0 at the last step."""
    warmup: int | None = 0
    """steps over which the learning rate rises linearly (None: 50, or all if there are fewer)."""

    def __post_init__(self) -> None:
        check_sizes(steps=self.steps, batch=self.batch)
        check_choice("schedule", self.schedule, SCHEDULES)
        wanted = "a positive number up to 1e30, e.g. 0.001"
        check_positive("learning_rate", self.learning_rate, wanted)
        if self.learning_rate > 1e30:
            raise FieldError(
                "learning_rate", f"learning_rate is {wanted}; got {self.learning_rate!r}"
            )
        object.__setattr__(self, "learning_rate", plain_float(self.learning_rate))
        if self.warmup is not None:
            check_steps("warmup", self.warmup, self.steps)

    @abstractmethod
    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Make torch's optimiser of these weights, with a state from the start."""

    def fit(self) -> "Optimiser":
        """Return the optimiser with nothing left None."""
        return dataclasses.replace(
            self, warmup=min(50, self.steps) if self.warmup is None else self.warmup
        )

    def rate(self, step: int) -> float:
        """Return the learning rate of the update that follows `step` others."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        fall = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return self.learning_rate * rise * fall


@dataclass(frozen=True)
class Adam(Optimiser):
    """Moves weights by Kingma and Ba's algorithm."""

    name: ClassVar[str] = "adam"

    betas: tuple[float, float] = (0.9, 0.999)
    """Adam's: what remains of its two averages from step to step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        wanted = "two numbers from 0 to below 1, e.g. (0.9, 0.999)"
        check_kind("betas", self.betas, (tuple, list), wanted)
        for beta in self.betas:
            check_number("betas", beta, 0, wanted=wanted)
        if len(self.betas) != 2 or max(self.betas) >= 1:
            raise FieldError("betas", f"betas is {wanted}; got {described(self.betas)}")
        object.__setattr__(self, "betas", tuple(map(plain_float, self.betas)))

    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weights = list(weights)
        made = torch.optim.Adam(weights, lr=self.learning_rate, betas=self.betas)
        for (
            weight
        ) in weights:  # what Adam would make at its first step, so that step 0 has a state too
            moments = {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
            made.state[weight] = {"step": torch.zeros(()), **moments}
        return made


@dataclass(frozen=True)
class SoapConfig(Adam):
    """Moves weights by Adam in the eigenbasis of Shampoo's factors (`sih.training.soap`)."""

    name: ClassVar[str] = "soap"

    betas: tuple[float, float] = (0.95, 0.95)
    """what remains from step to step of the gradient's mean, and of its squares and factors."""
    renew_every: int = 5
    """steps between two renewals of the basis."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sizes(renew_every=self.renew_every)

    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return Soap(weights, self.learning_rate, self.betas, self.renew_every)


OPTIMISERS: dict[str, type[Optimiser]] = {"adam": Adam, "soap": SoapConfig}
"""Every optimiser by its name."""
