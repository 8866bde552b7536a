"""The complete description of a training run, in parts that check themselves.

    TrainConfig(lags=(1, 3), model="disentangled", init="harmonic", steps=2400).task.lags

Every field has a flat name, in whatever part it is: in the constructor, as a flag of
`sih train`, in presets and sweeps. `sih.training.config_parts` makes parts of fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import torch

from sih.base.errors import FieldError
from sih.base.record import Among, SeedNumber, field_names, read_field
from sih.base.showing import Shown
from sih.models import ModelShape
from sih.task import Batch, CausalTask, sample
from sih.training.config_parts import (
    CHOICES,
    RUN_FIELDS,
    SECTIONS,
    EvaluationConfig,
    Fields,
    parts_of,
    unfolded,
)
from sih.training.optimiser import Optimiser
from sih.training.recipes import Recipe
from sih.training.task_config import OwnTask, TaskConfig

STORED = ("float32", "float16")
TARGETS = ("sampled", "distribution")
"""Targets of the loss: the token drawn, or its distribution."""
HELD_OUT_SEED = 2**40
"""Added to `matrix_seed`, the seed of the held-out sequences.

torch's generator on the CPU takes seeds modulo 2**32, so there this is 0. Held-out
sequences are those of seed `matrix_seed`. A run with that `seed` starts from the same
random numbers, and draws its weights from them first. None of the held-out sequences is
in the first 25 batches of such a run (tests/unit/training/test_held_out.py).
Measurements on disk depend on this seed, so it stays.
"""


@dataclass(frozen=True, init=False)
class TrainConfig(Shown):
    """Everything that a run's result depends on, apart from the machine.

    The defaults are the paper's. A field may be given by its flat name, a part as a
    whole, or both: then the field wins. The repr shows the fields that differ from the
    defaults.

    Args:
        seed: the seed of initial weights and batches.
        stored: the dtype of trained weights on disk; "float16" takes half the space of
            "float32".
        target: the target of the loss at every position: the next token as "sampled",
            or its true "distribution" (`sih.truth`), which knows the lag and, with
            `fresh`, the sequence's own matrix.
        fields: of the parts, e.g. lags, states, length; model ("standard" or
            "disentangled"), heads, dim; optimiser, steps, batch, learning_rate; init
            (the recipe); evaluate_every. `config.flat()` lists all. `task` may be any
            task of one's own.

    >>> import sih
    >>> config = sih.TrainConfig(lags=(1, 3), model="disentangled", steps=2400)
    >>> config
    TrainConfig(model='disentangled', lags=(1, 3), steps=2400)
    >>> config.task.lags, config.model.kind, config.optimiser.batch
    ((1, 3), 'disentangled', 256)
    """

    task: Any
    """A `TaskConfig`, or an `OwnTask`. No code here distinguishes them."""
    model: ModelShape
    optimiser: Optimiser
    recipe: Recipe
    evaluation: EvaluationConfig
    seed: SeedNumber = 0
    stored: Annotated[str, Among(STORED)] = "float32"
    target: Annotated[str, Among(TARGETS)] = "sampled"

    def __init__(
        self, *, seed: int = 0, stored: str = "float32", target: str = "sampled", **fields: Any
    ) -> None:
        top = {"seed": seed, "stored": stored, "target": target}
        self._fill({**top, **unfolded(fields)}, {})

    @classmethod
    def over(cls, base: Fields, fields: Fields) -> TrainConfig:
        """Return a configuration from unfolded fields, with other fields as defaults.

        The base is the fields of a preset, of an older file or of a configuration to
        replace. Those that the chosen parts lack are left out.

        >>> TrainConfig.over({"dim": 32, "max_period": 4}, {"seed": 1})
        TrainConfig(dim=32, seed=1)
        """
        config = cls.__new__(cls)
        config._fill(fields, base)
        return config

    def _fill(self, fields: Fields, base: Fields) -> None:
        found = parts_of(fields, base)
        check_length(found["task"])
        found["optimiser"] = optimiser = found["optimiser"].resolve()
        found["recipe"] = found["recipe"].resolve(found["model"], found["task"], optimiser.steps)
        for name in RUN_FIELDS:
            value = {name: getattr(type(self), name), **base, **fields}[name]
            found[name] = read_field(type(self), name, value)
        for name, value in found.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    def _facts(self) -> Mapping[str, Any]:
        return self.unusual()

    @property
    def heads(self) -> tuple[int, ...]:
        """Return the number of heads of each layer, () for a model without
        attention.
        """
        return tuple(getattr(self.model, "heads", ()))

    def flat(self) -> dict[str, Any]:
        """Return every field by its flat name, with the words that chose the parts.

        >>> TrainConfig(steps=7).flat()["steps"]
        7
        """
        words = (self.model.kind, self.recipe.name, self.optimiser.name)
        found = dict(zip(CHOICES, words, strict=True))
        for part in (getattr(self, name) for name in SECTIONS):
            found |= {name: getattr(part, name) for name in field_names(type(part))}
        return {**found, **{name: getattr(self, name) for name in RUN_FIELDS}}

    def unusual(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, by flat name.

        >>> TrainConfig(seed=3, lags=(1, 2)).unusual()
        {'lags': (1, 2), 'seed': 3}
        """
        records = [*(getattr(self, name) for name in SECTIONS), self]
        fields = [field for record in records for field in dataclasses.fields(record)]
        usual = {**{field.name: field.default for field in fields}, **CHOICES}
        return {name: value for name, value in self.flat().items() if value != usual[name]}

    def replace(self, **changes: Any) -> TrainConfig:
        """Return the same configuration with some fields changed.

        Fields that new parts lack are left out.

        >>> TrainConfig(dim=32).replace(seed=1)
        TrainConfig(dim=32, seed=1)
        """
        return self.over(self.flat(), unfolded(changes))

    def held_out_batch(self, task: CausalTask) -> Batch:
        """Return the held-out sequences, the same for all runs on one task.

        >>> config = TrainConfig(lags=(1, 2), length=16, held_out=8)
        >>> config.held_out_batch(config.task.build())
        Batch(size=8, length=16, lags={1: 3, 2: 5})
        """
        seed = HELD_OUT_SEED + self.task.held_out_seed
        return sample(task, self.evaluation.held_out, rng=torch.Generator().manual_seed(seed))


def check_length(task: TaskConfig | OwnTask) -> None:
    """Raise a FieldError unless sequences have a token with a parent, and one after it.

    Otherwise no mean KL exists.
    """
    least = task.first + 2
    if task.length < least:
        reason = f"one next token past the first {task.first} positions to measure KL on"
        raise FieldError(
            "length",
            f"length must be at least {least} for {task.in_words}: {reason}; got {task.length}",
        )
