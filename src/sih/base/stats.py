r"""Means with standard errors, paired differences and ratios.

The standard error of the mean of n repetitions (sequences, matrices, seeds) is
$\sqrt{\sum_b (x_b - \bar x)^2 / (n - 1)} / \sqrt{n}$. Rivals measured on the same
repetitions are compared by their paired differences. Shared variation, above all how
hard a sequence is, then cancels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

V = TypeVar("V", float, Tensor)
Rows = Tensor | Sequence[Tensor] | Sequence[float]
"""One entry per repetition: a tensor or a list."""


def quotient(value: float, unit: float) -> float:
    """Return the quotient, with infinity (or nan, for 0 of 0) where the unit is 0."""
    return value / unit if unit else (math.inf if value else math.nan)


@dataclass(frozen=True, eq=False)
class Estimate(Generic[V]):
    """A mean and its standard error: numbers, or tensors of one shape."""

    mean: V
    error: V

    def pair(self) -> tuple[float, float]:
        """Return the mean and the error of a single number as plain floats."""
        return float(self.mean), float(self.error)

    def interval(self, errors: float = 2.0) -> tuple[V, V]:
        """Return both ends of the interval of `errors` standard errors either way."""
        return self.mean - errors * self.error, self.mean + errors * self.error

    def with_error(self) -> str:
        """Return the mean of a number with two standard errors, as text.

        The error has two digits.

        >>> Estimate(1.0741, 0.0073).with_error(), Estimate(0.013502, 0.000122).with_error()
        ('1.074 ± 0.015', '0.01350 ± 0.00024')
        """
        mean, error = self.pair()
        if not (math.isfinite(mean) and math.isfinite(error) and error):
            return f"{mean:.4g}"
        places = max(0, 1 - math.floor(math.log10(2 * error)))
        return f"{mean:.{places}f} ± {2 * error:.{places}f}"


def estimate(values: Rows, dim: int = 0) -> Estimate[Tensor]:
    """Return the mean over the repetitions along `dim`, with its standard error.

    With one repetition the error is unknown (nan).

    >>> estimate([1.0, 2.0, 3.0, 6.0]).pair()
    (3.0, 1.0801234497346435)
    """
    rows = _stacked(values)
    count = rows.shape[dim]
    mean = rows.mean(dim=dim)
    return Estimate(
        mean, rows.std(dim=dim) / math.sqrt(count) if count > 1 else torch.full_like(mean, math.nan)
    )


def paired(values: Rows, reference: Rows) -> Estimate[Tensor]:
    """Return the mean difference to a reference, paired by repetition, with error.

    If one has more repetitions, the first that both have are used.

    >>> paired([1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 9.0]).pair()
    (0.5, 0.0)
    """
    rows, others = _stacked(values), _stacked(reference)
    both = min(len(rows), len(others))
    return estimate(rows[:both] - others[:both])


def ratio(difference: Estimate[V], reference: Estimate[V]) -> Estimate[V]:
    r"""Return the ratio to a reference y, from a paired difference d to it.

    Both are random. To first order the error of $r = 1 + d / y$ is
    $\sqrt{e_d^2 + (r - 1)^2 e_y^2} / |y|$, if they are independent. If each repetition
    is available, `ratio_of_means` needs no such assumption. A known reference has the
    error 0.

    >>> ratio(Estimate(0.004, 0.0003), Estimate(0.02, 0.002)).pair()
    (1.2, 0.025)
    """
    excess = difference.mean / reference.mean
    error = (difference.error**2 + (excess * reference.error) ** 2) ** 0.5
    return Estimate(1 + excess, error / abs(reference.mean))


def ratio_of_means(values: Rows, reference: Rows) -> Estimate[Tensor]:
    r"""Return the ratio of two means on the same repetitions, $r = \bar x / \bar y$,
    with its standard error.

    Both means are random. To first order (the delta method) the error of r is that of
    the mean of $(x_b - r\,y_b) / \bar y$.

    >>> ratio_of_means([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).pair()
    (0.5, 0.0)
    """
    rows, others = _stacked(values), _stacked(reference)
    mean = rows.mean(dim=0) / others.mean(dim=0)
    return Estimate(mean, estimate((rows - mean * others) / others.mean(dim=0)).error)


def wilson(successes: int, trials: int, errors: float = 1.96) -> tuple[float, float]:
    r"""Return Wilson's interval of a rate, by default the 95 % interval.

    It is the set of all p with $|p - s/n| \le z \sqrt{p (1 - p) / n}$.

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
    """Return the rows as one tensor; numbers become float64."""
    if isinstance(values, Tensor):
        return values
    rows = (
        row if isinstance(row, Tensor) else torch.tensor(row, dtype=torch.float64) for row in values
    )
    return torch.stack(list(rows))
