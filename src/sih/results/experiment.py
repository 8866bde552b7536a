"""What an experiment is: a name, a configuration, and a pure function from it to data. What draws it is elsewhere.

Besides, how lag sets and numbers with errors are written in tables and titles.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from sih.runs.run_store import RunStore

C = TypeVar("C")
D = TypeVar("D")
Rows = list[list[str]]
"""A table as text: its header, then its rows."""


def no_models(config: object, store: RunStore) -> tuple[str, ...]:
    """Name no models, for an experiment that reads none."""
    return ()


def named_models(config: Any, store: RunStore) -> tuple[str, ...]:
    """Name the models of the configuration."""
    names: tuple[str, ...] = config.models
    return names


def no_table(data: object) -> Rows:
    """Make no rows, for an experiment without a table."""
    return []


@dataclass(frozen=True)
class Seeded:
    """Asks for an answer whose matrices, weights and sequences are drawn from this seed."""

    seed: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class Experiment(Generic[C, D]):
    """Says what is asked (`config`), how it is answered (`compute`) and what the answer is (`data`, a dataclass).

    `compute` is pure and reads trained models from its argument alone; `reads` names those that it reads, or would
    read if they were there. All of them are functions of a module, so that an experiment can go to another process.
    """

    name: str
    caption: str
    config: C
    data: type[D]
    compute: Callable[[C, RunStore], D]
    reads: Callable[[C, RunStore], tuple[str, ...]] = no_models
    table: Callable[[D], Rows] = no_table
    beyond: bool = False
    """Goes beyond the paper: made by `sih reproduce --all` (`make run-all`), not by `make run`."""
    shipped: bool = False
    """Reads shipped models alone, so that verdicts on them do not depend on a user's own runs."""

    def with_seed(self, seed: int) -> "Experiment[C, D]":
        """Ask the same on other random numbers, which changes nothing where nothing is random."""
        config: Any = self.config
        seeded = isinstance(config, Seeded)
        return replace(self, config=replace(config, seed=seed)) if seeded else self


def braces(lags: Sequence[int]) -> str:
    """Write a lag set as mathematics has it: {1,2,3}."""
    return "{" + ",".join(map(str, lags)) + "}"


def with_error(value: float, error: float) -> str:
    """Write a number and its error to 4 decimals, without a zero before the point: .0128±.0003."""
    return re.sub(r"(?<!\d)0\.", ".", f"{value:.4f}±{error:.4f}")
