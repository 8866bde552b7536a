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

    def with_error(self) -> str:
        """Return the mean of a single number and two standard errors in words, with two digits of the error.

        >>> Estimate(1.0741, 0.0073).with_error(), Estimate(0.013502, 0.000122).with_error()
        ('1.074 ± 0.015', '0.01350 ± 0.00024')
        """
        mean, error = self.pair()
        if not (math.isfinite(mean) and math.isfinite(error) and error):
            return f"{mean:.4g}"
        places = max(0, 1 - math.floor(math.log10(2 * error)))
        return f"{mean:.{places}f} ± {2 * error:.{places}f}"


def estimate(values: Rows, dim: int = 0) -> Estimate[Tensor]:
    """Average over the repetitions along `dim`, with the standard error, which one repetition leaves unknown (nan).

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
    """Average the differences to a reference on the same repetitions, the first that both have.

    >>> paired([1.0, 2.0, 3.0], [0.5, 1.5, 2.5, 9.0]).pair()
    (0.5, 0.0)
    """
    rows, others = _stacked(values), _stacked(reference)
    both = min(len(rows), len(others))
    return estimate(rows[:both] - others[:both])


def ratio(difference: Estimate[V], reference: Estimate[V]) -> Estimate[V]:
    r"""Return how many times the reference something is, from its paired difference d to the reference y.

    Both are random: to first order the error of $r = 1 + d / y$ is $\sqrt{e_d^2 + (r - 1)^2 e_y^2} / |y|$, if they are
    independent. Where each repetition is at hand, `ratio_of_means` needs no such assumption. A reference that is known
    has the error 0.

    >>> ratio(Estimate(0.004, 0.0003), Estimate(0.02, 0.002)).pair()
    (1.2, 0.025)
    """
    excess = difference.mean / reference.mean
    error = (difference.error**2 + (excess * reference.error) ** 2) ** 0.5
    return Estimate(1 + excess, error / abs(reference.mean))


def ratio_of_means(values: Rows, reference: Rows) -> Estimate[Tensor]:
    r"""Return the ratio of two means on the same repetitions, $r = \bar x / \bar y$, with its standard error.

    Both means are random. To first order (the delta method) the error of r is that of the mean of
    $(x_b - r\,y_b) / \bar y$.

    >>> ratio_of_means([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).pair()
    (0.5, 0.0)
    """
    rows, others = _stacked(values), _stacked(reference)
    mean = rows.mean(dim=0) / others.mean(dim=0)
    return Estimate(mean, estimate((rows - mean * others) / others.mean(dim=0)).error)


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
    return torch.stack(
        [v if isinstance(v, Tensor) else torch.tensor(v, dtype=torch.float64) for v in values]
    )


def beta_quantile(a: Tensor, b: Tensor, q: float) -> Tensor:
    r"""Find x with $\mathbb{P}(X \le x) = q$ for X of law Beta(a, b), by Newton's steps, halved where they lead astray.

    >>> [round(x, 12) for x in beta_quantile(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]), 0.25).tolist()]
    [0.25, 0.5]
    """
    a, b = torch.broadcast_tensors(a.double(), b.double())
    low, high = torch.zeros_like(a), torch.ones_like(a)
    x = a / (a + b)
    for _ in range(200):
        error = beta_cdf(x, a, b) - q
        low, high = torch.where(error < 0, x, low), torch.where(error < 0, high, x)
        density = _log_beta_density(x, a, b).exp()
        step = x - error / density
        new = torch.where((step > low) & (step < high), step, (low + high) / 2)
        moved, x = (new - x).abs(), new
        if not (moved > 1e-15 + 1e-13 * x).any():
            break
    return x


def beta_cdf(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    r"""Compute $I_x(a, b)$, the distribution function of Beta(a, b), by Gauss's continued fraction.

    $I_x(a,b) = \frac{x^a (1-x)^b}{a\,B(a,b)} \cfrac{1}{1+\cfrac{d_1}{1+\cfrac{d_2}{1+\cdots}}}$ with
    $d_{2m} = \frac{m(b-m)x}{(a+2m-1)(a+2m)}$, $d_{2m+1} = -\frac{(a+m)(a+b+m)x}{(a+2m)(a+2m+1)}$. It converges quickly
    for x below the mean or so; above it $I_x(a,b) = 1 - I_{1-x}(b,a)$. Evaluated from the front (Lentz's way).
    """
    swap = x > (a + 1) / (a + b + 2)
    x, a, b = torch.where(swap, 1 - x, x), torch.where(swap, b, a), torch.where(swap, a, b)
    c, d, value = torch.ones_like(x), torch.zeros_like(x), torch.ones_like(x)
    for step in range(1, 100_000):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + term * d)
        c = _away_from_zero(1 + term / c)
        value = value * c * d
        if step % 8 == 0 and not ((c * d - 1).abs() > 1e-15).any():
            break
    found = (_log_beta_density(x, a, b) + x.log() + (-x).log1p() - a.log()).exp() / value
    found = torch.where(x > 0, found, 0.0)
    return torch.where(swap, 1 - found, found).clamp(0, 1)


def _log_beta_density(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    below: Tensor = torch.special.xlog1py(b - 1, -x)
    return torch.xlogy(a - 1, x) + below - log_beta


def _away_from_zero(value: Tensor) -> Tensor:
    return torch.where(value.abs() < 1e-300, 1e-300, value)
