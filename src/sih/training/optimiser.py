"""Optimisers: a part of a training configuration, and the table of them."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import nn

from sih.base.errors import FieldError
from sih.base.record import Above, Among, AtLeast, Below, Between, Count, Size, check
from sih.training.soap import Soap

SCHEDULES = ("constant", "cosine")
Decay = Annotated[float, AtLeast(0), Below(1)]


@dataclass(frozen=True)
class Optimiser(ABC):
    """The number of updates, their size, and the number of sequences in each."""

    name: ClassVar[str]

    steps: Size = 10_000
    """Number of updates."""
    batch: Size = 256
    """Sequences in a batch, drawn anew at every step."""
    learning_rate: Annotated[float, Above(0), Between(0, 1e30)] = 1e-3
    """Learning rate."""
    schedule: Annotated[str, Among(SCHEDULES)] = "constant"
    """Schedule of the learning rate: constant, or cosine, which falls to 0 at the last
    step."""
    warmup: Count | None = 0
    """Steps over which the learning rate rises linearly. None: 50, or all if there are
    fewer."""

    def __post_init__(self) -> None:
        check(self)
        if self.warmup is not None and self.warmup > self.steps:
            wanted = f"a number of steps, 0 to {self.steps}"
            raise FieldError("warmup", f"warmup is {wanted}; got {self.warmup}")

    @abstractmethod
    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """Return torch's optimiser of these weights, with a state from the start."""

    def resolve(self) -> Optimiser:
        """Return the optimiser with every None filled in."""
        if self.warmup is not None:
            return self
        return dataclasses.replace(self, warmup=min(50, self.steps))

    def rate(self, step: int) -> float:
        """Return the learning rate of the update that follows `step` others."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        cosine = (1 + math.cos(math.pi * step / self.steps)) / 2
        fall = cosine if self.schedule == "cosine" else 1.0
        return self.learning_rate * rise * fall


@dataclass(frozen=True)
class Adam(Optimiser):
    """Kingma and Ba's algorithm."""

    name: ClassVar[str] = "adam"

    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay rates of Adam's two averages."""

    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        weights = list(weights)
        made = torch.optim.Adam(weights, lr=self.learning_rate, betas=self.betas)
        for weight in weights:  # Adam makes this at its first step; here step 0 has a state, too
            moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
            made.state[weight] = {"step": torch.zeros(()), **moments}
        return made


@dataclass(frozen=True)
class SoapConfig(Adam):
    """Adam in the eigenbasis of Shampoo's factors (`sih.training.soap`)."""

    name: ClassVar[str] = "soap"

    betas: tuple[Decay, Decay] = (0.95, 0.95)
    """Decay rates of the averages of the gradient, and of its squares and factors."""
    renew_every: Size = 5
    """Steps between two updates of the eigenbasis."""

    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return Soap(weights, self.learning_rate, self.betas, self.renew_every)


OPTIMISERS: dict[str, type[Optimiser]] = {"adam": Adam, "soap": SoapConfig}
"""Every optimiser by its name."""
