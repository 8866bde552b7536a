r"""A mean with its standard error, paired differences and ratios: how well a number is known, written once.

The standard error of the mean of n repetitions (sequences, matrices, seeds) is
$\sqrt{\sum_b (x_b - \bar x)^2 / (n - 1)} / \sqrt{n}$. Rivals measured on the same repetitions are compared by their
differences, repetition by repetition: what they share, above all how hard a sequence is, drops out of the error.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

V = TypeVar("V", float, Tensor)
Rows = Tensor | Sequence[Tensor] | Sequence[float]
"""One entry for each repetition: a tensor over them, or a list."""


def quotient(value: float, unit: float) -> float:
    """Divide, with infinity (or nan, for 0 of 0) where the unit is 0."""
    return value / unit if unit else (math.inf if value else math.nan)


@dataclass(frozen=True, eq=False)
class Estimate(Generic[V]):
    """Holds a mean and its standard error, numbers or tensors of one shape."""

    mean: V
    error: V

    def pair(self) -> tuple[float, float]:
        """Give the mean and the error of a single number as plain floats."""
        return float(self.mean), float(self.error)

    def interval(self, errors: float = 2.0) -> tuple[V, V]:
        """Give both ends of the interval that reaches `errors` standard errors either way."""
        return self.mean - errors * self.error, self.mean + errors * self.error


def estimate(values: Rows, dim: int = 0) -> Estimate[Tensor]:
    """Average over the repetitions along `dim`, with the standard error, which one repetition leaves unknown (nan).

    >>> estimate([1.0, 2.0, 3.0, 6.0]).pair()
    (3.0, 1.0801234497346435)
    """
    rows = _stacked(values)
    count = rows.shape[dim]
    mean = rows.mean(dim=dim)
    return Estimate(mean, rows.std(dim=dim) / math.sqrt(count) if count > 1 else torch.full_like(mean, math.nan))


def paired(values: Rows, reference: Rows) -> Estimate[Tensor]:
    """Average the differences to a reference on the same repetitions, the first that both have.

    >>> paired([1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 9.0]).pair()
    (0.5, 0.0)
    """
    rows, others = _stacked(values), _stacked(reference)
    both = min(len(rows), len(others))
    return estimate(rows[:both] - others[:both])


def ratio(difference: Estimate[V], reference: V) -> Estimate[V]:
    """Estimate how many times the reference something is, from its paired difference to the reference.

    The error is that of the difference: the reference's mean counts as known.

    >>> ratio(Estimate(0.001, 0.0005), 0.02)
    Estimate(mean=1.05, error=0.025)
    """
    return Estimate(1 + difference.mean / reference, difference.error / abs(reference))


def wilson(successes: int, trials: int, errors: float = 1.96) -> tuple[float, float]:
    r"""Return Wilson's interval of a rate, 95 % unless said: all p with $|p - s/n| \le z \sqrt{p (1 - p) / n}$.

    >>> [round(end, 3) for end in wilson(19, 20)]
    [0.764, 0.991]
    """
    if not trials:
        return 0.0, 1.0
    rate, weight = successes / trials, errors**2 / trials
    middle = (rate + weight / 2) / (1 + weight)
    half = math.sqrt(rate * (1 - rate) * weight + weight**2 / 4) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def _stacked(values: Rows) -> Tensor:
    if isinstance(values, Tensor):
        return values
    return torch.stack([v if isinstance(v, Tensor) else torch.tensor(v, dtype=torch.float64) for v in values])
