"""An experiment: a name, a configuration and a pure function to data.

A configuration names the task. It checks its own annotations, so that an impossible
figure of another task (`sih figure NAME --states 10`) is refused in one line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Generic, TypeVar

import torch

from sih.base.errors import FieldError
from sih.base.record import (
    Above,
    Among,
    AtLeast,
    Below,
    Increasing,
    NotEmpty,
    SeedNumber,
    Size,
    check,
)
from sih.task.matrices import RANDOM

Lags = Annotated[tuple[Size, ...], Increasing()]
LagSets = Annotated[tuple[Lags, ...], NotEmpty("one set of lags or more, e.g. ((1, 2, 3),)")]
States = Annotated[int, AtLeast(2), Below(2**31)]
MatrixLaw = Annotated[str, Among(RANDOM)]
Positive = Annotated[float, Above(0)]
Several = Annotated[int, AtLeast(2), Below(2**31)]
"""Number of repetitions, enough for an error."""

Config = TypeVar("Config")
Data = TypeVar("Data")
FRESH_SEED = 2**31
"""Added to a seed where models are measured, to keep distance from the seeds of
training and held-out sequences. (On a CPU torch takes a seed modulo 2^32: a larger
number would be no other seed.)"""


@dataclass(frozen=True)
class Checked:
    """A configuration that checks itself against its annotations."""

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Seeded(Checked):
    """A configuration with one seed for matrices, weights and sequences."""

    seed: SeedNumber = field(default=0, kw_only=True)
    """Random seed for the matrices and the sequences."""

    def rng(self) -> torch.Generator:
        """Return a new generator."""
        return torch.Generator().manual_seed(self.seed)

    def fresh_rng(self) -> torch.Generator:
        """Return a generator for sequences that were used neither in training nor in
        its evaluations.
        """
        return torch.Generator().manual_seed(FRESH_SEED + self.seed)


def check_comparable(lags: tuple[int, ...]) -> None:
    """Raise a FieldError unless there are lags to compare."""
    if len(lags) < 2:
        raise FieldError("lags", f"a comparison needs at least 2 lags, e.g. 1 2 3; got {lags}")


def no_models(config: object, store: object) -> tuple[str, ...]:
    """Return no names, for an experiment that reads no trained model."""
    return ()


def named_models(config: Any, store: object) -> tuple[str, ...]:
    """Return the names in `config.models`."""
    names: tuple[str, ...] = config.models
    return names


@dataclass(frozen=True)
class Experiment(Generic[Config, Data]):
    """A question, and the function that answers it.

    `compute` is pure. It reads trained models from its argument alone, and `reads`
    names these models. Both are functions of a module, so that an experiment can be
    sent to another process.

    The second argument is a `sih.training.runs.run_store.RunStore`. It is not imported
    here, since the key of every experiment would then cover the files of models and
    training.
    """

    name: str
    config: Config
    data: type[Data]
    """The data's class: a dataclass of numbers, words, tensors, tuples, dicts and
    further dataclasses."""
    compute: Callable[[Config, Any], Data]
    reads: Callable[[Config, Any], tuple[str, ...]] = no_models
    beyond: bool = False
    """Whether it goes beyond the paper: made only by `sih reproduce --all`
    (`make run-all`)."""
    shipped: bool = False
    """Whether it reads shipped models alone, so that verdicts do not depend on a user's
    own runs."""

    def asking(self, **changes: Any) -> Experiment[Config, Data]:
        """Return the same question about another task, under its own name: NAME-DIGEST.

        Fields that already have the given value change nothing, including the name.
        """
        own: Any = self.config
        config = replace(own, **changes) if changes else own
        if config == own:
            return self
        return replace(self, name=f"{self.name}-{digest_of_config(config)}", config=config)

    def with_seed(self, seed: int) -> Experiment[Config, Data]:
        """Return the same question with other random numbers, if it draws any."""
        config: Any = self.config
        seeded = isinstance(config, Seeded)
        return replace(self, config=replace(config, seed=seed)) if seeded else self


def digest_of_config(config: Any) -> str:
    """Return eight letters that identify a configuration in the names of files."""
    plain = json.dumps(asdict(config), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:8]
