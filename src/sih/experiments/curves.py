r"""Means with standard errors along the sequence, of rivals that predict the same sequences.

A `Line` is the mean of something over repetitions (sequences, or matrices) at every position, in windows of positions,
and over all positions past the first max_lag. Differences are taken repetition by repetition before they are
averaged: what rivals share, above all how hard a sequence is, drops out of the error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.experiments.cells import with_error


@dataclass(frozen=True)
class Line:
    """Mean and standard error over `count` repetitions. `along[i]` is at position i, when i + 1 tokens are seen;
    `windows["9-16"]`, a mean and its error, is over the positions at which 9 to 16 tokens are seen."""

    count: int
    along: list[float]
    along_error: list[float]
    windows: dict[str, tuple[float, float]]
    mean: float
    mean_error: float

    def __str__(self) -> str:
        return with_error(self.mean, self.mean_error)


@dataclass(frozen=True)
class Panel:
    """KL to the truth on the sequences of one task. `over[reference][name]` is the KL of one minus that of the other,
    sequence by sequence; the reference "midway" is the mean of BMA and ML, so below it a law is nearer BMA."""

    lags: tuple[int, ...]
    kl: dict[str, Line]
    over: dict[str, dict[str, Line]]


def line(rows: Float[Tensor, "repetition time"], max_lag: int) -> Line:
    """The mean row, and how well it is known."""
    if len(rows) < 2 or rows.shape[1] <= max_lag:
        raise ValueError(
            f"a mean and its error need two sequences or more, longer than max_lag = {max_lag}; got {len(rows)}, of "
            f"{rows.shape[1]} positions"
        )
    along, along_error = _mean_and_error(rows)
    parts = {f"{first}-{last}": rows[:, first - 1 : last] for first, last in windows(max_lag, rows.shape[1])}
    found = {name: _mean_and_error(part.mean(dim=1)) for name, part in parts.items()}
    mean, error = _mean_and_error(rows[:, max_lag:].mean(dim=1))
    return Line(
        len(rows),
        _rounded(along),
        _rounded(along_error),
        {name: (_rounded(m)[0], _rounded(e)[0]) for name, (m, e) in found.items()},
        mean.item(),
        error.item(),
    )


def panel(
    kl: Mapping[str, Float[Tensor, "_ time"]], lags: Sequence[int], references: Sequence[str] = ("BMA", "ML")
) -> Panel:
    """The lines of each rival. Rows are sequences; one measured on fewer is compared on those, the first."""
    against = {name: kl[name] for name in references if name in kl}
    if {"BMA", "ML"} <= against.keys():
        against["midway"] = (kl["BMA"] + kl["ML"]) / 2

    def differences(reference: Tensor) -> Iterator[tuple[str, Line]]:
        for name, rows in kl.items():
            if rows is not reference:
                both = min(len(rows), len(reference))
                yield name, line(rows[:both] - reference[:both], lags[-1])

    lines = {name: line(rows, lags[-1]) for name, rows in kl.items()}
    return Panel(tuple(lags), lines, {name: dict(differences(rows)) for name, rows in against.items()})


def windows(max_lag: int, length: int) -> list[tuple[int, int]]:
    """Numbers of tokens seen, from the first at which the context says something of the lag, cut at powers of two.

    >>> windows(3, 40)
    [(4, 8), (9, 16), (17, 32), (33, 40)]
    """
    edges = [max_lag, *(2**n for n in range(3, 64) if max_lag < 2**n < length), length]
    return [(a + 1, b) for a, b in itertools.pairwise(edges)]


def mean_of(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean(dim=0)


def error_of(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).std(dim=0) / math.sqrt(len(values))


def _mean_and_error(rows: Float[Tensor, "repetition ..."]) -> tuple[Tensor, Tensor]:
    return rows.mean(dim=0), rows.std(dim=0) / math.sqrt(len(rows))


def _rounded(values: Tensor) -> list[float]:
    """To 6 significant digits, far finer than the errors, so that files stay small."""
    return [float(f"{value:.6g}") for value in values.reshape(-1).tolist()]
