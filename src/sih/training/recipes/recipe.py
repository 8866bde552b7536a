"""The base of recipes: initial weights, trained parameters, weights frozen at first."""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from sih.base.errors import FieldError, check_steps, described
from sih.base.record import Count, Size, check
from sih.models import Model, ModelShape
from sih.task import CausalTask
from sih.training.task_config import TaskPart

Fields = Mapping[str, Any]
"""Fields of a configuration by their flat names."""
Schedule = tuple[tuple[Count, Size], ...]
"""Pairs of a step and a length of sequences until then."""


class Parametrisation:
    """A model and the parameters that the optimiser changes.

    The trainer uses nothing else. `parameters` are the model's weights by name, or
    tables that the weights are made from.
    """

    def __init__(self, model: Model, parameters: dict[str, nn.Parameter] | None = None) -> None:
        self.model = model
        self.parameters = dict(model.named_parameters()) if parameters is None else parameters

    def collect_gradients(self, step: int) -> None:
        """Compute the gradients of `parameters` from those of the weights, after `step`
        updates.
        """

    def update_weights(self) -> None:
        """Compute the weights from `parameters`."""


@dataclass(frozen=True)
class Recipe(ABC):
    """A method of training, chosen by its name.

    A recipe is a subclass in a file of this folder. Fields that may be None are then
    filled in from the number of steps and the length of a sequence.
    """

    name: ClassVar[str]
    """Its name in flags and in configurations on disk."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of model that it supports, () for any."""
    settings: ClassVar[Fields] = {}
    """Further fields of a configuration, by flat name, that the preset of its name
    sets."""
    with_soap: ClassVar[Fields] = {"betas": (0.95, 0.95)}
    """Fields that the preset `auto` also sets, because they are better with SOAP."""
    stages: ClassVar[tuple[tuple[int, int, int], ...]] = ((1, 6, 32), (5, 12, 64))
    """The default lengths: (a, b, length) is that length until a/b of the steps are
    done."""

    length_schedule: Schedule | None = ()
    """Pairs of a step and a length: shorter sequences until that step. None: 32, then
    64 tokens."""

    def __post_init__(self) -> None:
        check(self)

    @abstractmethod
    def start(
        self, shape: ModelShape, task: CausalTask, rng: torch.Generator, device: torch.device
    ) -> Parametrisation:
        """Return the model before its first step, drawn from `rng`."""

    def resolve(self, shape: ModelShape, task: TaskPart, steps: int) -> Recipe:
        """Return the recipe with every None filled in, or raise a FieldError."""
        if self.kinds and shape.kind not in self.kinds:
            says = f"the recipe {self.name} is for {', '.join(self.kinds)}"
            raise FieldError("init", f"{says}; got {shape.kind}")
        schedule = self.length_schedule
        if schedule is None:
            schedule = self._stages(task, steps)
        self._check_schedule(schedule, task, steps)
        return dataclasses.replace(self, length_schedule=schedule)

    def _stages(self, task: TaskPart, steps: int) -> Schedule:
        """Return the default schedule."""
        if not task.shortens:
            return ()
        stages = [(a * steps // b, length) for a, b, length in self.stages]
        return tuple(
            (until, length)
            for until, length in stages
            if until and task.first < length < task.length
        )

    def _check_schedule(self, schedule: Schedule, task: TaskPart, steps: int) -> None:
        if schedule and not task.shortens:
            says = f"{task.in_words} has no with_length(length), so sequences have one length"
            raise FieldError("length_schedule", f"length_schedule: {says}")
        untils = [0, *(until for until, _ in schedule)]
        rising = all(a < b for a, b in itertools.pairwise(untils)) and untils[-1] <= steps
        if not rising or any(not task.first < length < task.length for _, length in schedule):
            lengths = f"a length ({task.first + 1} to {task.length - 1}) until then"
            wanted = f"a step (rising, at most {steps}) and {lengths}, e.g. (1000, 32)"
            message = f"length_schedule is pairs of {wanted}; got {described(schedule)}"
            raise FieldError("length_schedule", message)

    def length_at(self, step: int, length: int) -> int:
        """Return the number of tokens in the sequences of the update that follows
        `step` others.
        """
        return next((short for until, short in self.length_schedule or () if step < until), length)


@dataclass(frozen=True)
class StagedRecipe(Recipe):
    """A recipe with restricted roles of layers at first, and periodic positions."""

    settings: ClassVar[Fields] = {
        "batch": 64,
        "betas": (0.9, 0.99),
        "schedule": "cosine",
        "warmup": None,
        "frozen_steps": None,
        "length_schedule": None,
    }
    most_frozen: ClassVar[int]
    """Largest number of steps for `frozen_steps=None`, which is otherwise a quarter of
    all."""

    max_period: Size = 8
    """The largest period of the positions."""
    frozen_steps: Count | None = 0
    """Steps during which layer 1 and the readout are restricted to their roles, and the
    layers between frozen. None: some hundred, or a quarter of all."""

    def resolve(self, shape: ModelShape, task: TaskPart, steps: int) -> Recipe:
        fitted = super().resolve(shape, task, steps)
        assert isinstance(fitted, StagedRecipe)
        frozen = self.frozen_steps
        if frozen is None:
            frozen = min(self.most_frozen, steps // 4)
        check_steps("frozen_steps", frozen, steps)
        if frozen and len(dataclasses.asdict(shape)["heads"]) < 2:
            says = "frozen_steps is for models of two layers or more"
            raise FieldError("frozen_steps", f"{says}; got {frozen}")
        return dataclasses.replace(fitted, frozen_steps=frozen)
