r"""Least errors of rational functions on a finite set of points: lower bounds with a
certificate.

Let f be given at the points 0 .. n. If some N/Q of degree H has Q > 0 and errors f -
N/Q of alternating sign at 2H + 2 of them, then no N_1/Q_1 of degree H with Q_1 > 0 has
smaller errors than the least of these in size: otherwise N Q_1 - N_1 Q, of degree 2H,
would change sign 2H + 1 times (docs/proofs/two_layers.md).

On 2H + 2 points the N/Q whose errors all have one size solves an eigenvalue problem:
with V the matrix of a basis and Z a basis of what is orthogonal to its columns,

$$Z^\top \mathrm{diag}(f) V q = \lambda\, Z^\top \mathrm{diag}(\pm 1) V q.$$

The points are then exchanged for those where the errors are largest, as Remez did.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

EXCHANGES = 40


@dataclass(frozen=True, eq=False)
class Alternation:
    """A rational function, and points at which its errors alternate in sign.

    >>> import torch
    >>> found = least_error(torch.sigmoid(torch.arange(-8.0, 9)), 1)
    >>> round(found.level, 3), round(found.largest, 3)
    (0.205, 0.205)
    """

    points: Int[Tensor, " point"]
    over: Float[Tensor, " coefficient"]
    """Coefficients of the numerator in Chebyshev's polynomials on [0, n]."""
    below: Float[Tensor, " coefficient"]
    level: float
    """The least absolute error at the points: no rational function of this degree does
    better."""
    largest: float
    """The largest error at all points 0 .. n, reached by this function. Infinite if Q
    <= 0."""


def least_error(values: Float[Tensor, " s"], degree: int) -> Alternation:
    """Return the alternation of the highest level found by exchanges of points.

    Args:
        values: f at 0, 1, .., n, with n of at least 2 * degree + 1.
    """
    values = values.double()
    best: Alternation | None = None
    for points in _starts(values, degree):
        for _ in range(EXCHANGES):
            found = _alternation(values, points, degree)
            if found is None:
                break
            if best is None or found.level > best.level:
                best = found
            moved = _exchange(_errors(values, found), points)
            if torch.equal(moved, points):
                break
            points = moved
    if best is None:
        raise ValueError(f"no rational function of degree {degree} alternates on these values")
    return best


def chebyshev(points: Int[Tensor, " point"], largest: int, degree: int) -> Float[Tensor, "point n"]:
    """Return Chebyshev's polynomials of degrees 0 .. degree on [0, largest], at some
    points.
    """
    x = 2 * points.double() / largest - 1
    columns = [torch.ones_like(x), x]
    for _ in range(degree - 1):
        columns.append(2 * x * columns[-1] - columns[-2])
    return torch.stack(columns[: degree + 1], dim=1)


def _starts(values: Float[Tensor, " s"], degree: int) -> list[Int[Tensor, " point"]]:
    """Return points that are even in s, at Chebyshev's places, and even in the values
    of f.
    """
    count, n = 2 * degree + 2, len(values) - 1
    even = torch.linspace(0, 1, count, dtype=torch.float64)
    bent = (1 - torch.cos(torch.pi * even)) / 2
    climbed = (values.diff().abs() + 0.2 * values.diff().abs().max() / n).cumsum(0)
    risen = torch.searchsorted(climbed / climbed[-1], even.clamp(1e-9, 1 - 1e-9))
    return [_apart(places, n) for places in ((n * even).round(), (n * bent).round(), risen)]


def _apart(places: Tensor, n: int) -> Int[Tensor, " point"]:
    """Return the places as different integers from 0 to n, in increasing order."""
    points = places.long().tolist()
    for i in range(1, len(points)):
        points[i] = max(points[i], points[i - 1] + 1)
    points[-1] = min(points[-1], n)
    for i in reversed(range(len(points) - 1)):
        points[i] = min(points[i], points[i + 1] - 1)
    return torch.tensor(points)


def _alternation(
    values: Float[Tensor, " s"], points: Int[Tensor, " point"], degree: int
) -> Alternation | None:
    """Return the function with alternating errors of one size at the points, if it has
    Q > 0.
    """
    n = len(values) - 1
    V = chebyshev(points, n, degree)
    Z = torch.linalg.qr(V, mode="complete").Q[:, degree + 1 :]
    signs = (-1.0) ** torch.arange(len(points), dtype=torch.float64)
    f = values[points]
    levels, vectors = torch.linalg.eig(
        torch.linalg.solve(Z.mT @ (signs[:, None] * V), Z.mT @ (f[:, None] * V))
    )
    found: Alternation | None = None
    for level, vector in zip(levels, vectors.mT, strict=True):
        below = vector.real
        Q = V @ below
        if level.imag.abs() > 1e-9 or not (_positive(Q) or _positive(-Q)):
            continue
        below = below * Q[0].sign()
        over = torch.linalg.lstsq(V, ((f - level.real * signs) * (V @ below))[:, None]).solution
        errors = f - (V @ over[:, 0]) / (V @ below)
        steady = bool((errors[1:] * errors[:-1] < 0).all())
        least = errors.abs().min().item() if steady else 0.0
        if found is None or least > found.level:
            found = Alternation(points, over[:, 0], below, least, 0.0)
            largest = _errors(values, found).abs().max().item()
            found = Alternation(points, over[:, 0], below, least, largest)
    return found


def _positive(Q: Float[Tensor, " point"]) -> bool:
    positive: Bool[Tensor, ""] = (Q > 0).all()
    return bool(positive)


def _errors(values: Float[Tensor, " s"], found: Alternation) -> Float[Tensor, " s"]:
    """Return f - N/Q at all points, infinite unless Q is above 0."""
    n = len(values) - 1
    V = chebyshev(torch.arange(n + 1), n, len(found.below) - 1)
    over, below = V @ found.over, V @ found.below
    return torch.where(below > 0, values - over / below, torch.inf)


def _exchange(errors: Float[Tensor, " s"], points: Int[Tensor, " point"]) -> Int[Tensor, " point"]:
    """Return the points of the largest errors of alternating sign, as many as there
    were.

    Between two old points, and beyond the ends, each stretch of one sign gives its
    largest error. If there are more stretches than points, those at the ends that are
    least are left out.
    """
    stretches: list[int] = []
    for s, error in enumerate(errors.tolist()):
        if error == 0:
            continue
        if stretches and (error > 0) == (errors[stretches[-1]] > 0):
            if abs(error) > errors[stretches[-1]].abs():
                stretches[-1] = s
        else:
            stretches.append(s)
    while len(stretches) > len(points):
        first, last = errors[stretches[0]].abs(), errors[stretches[-1]].abs()
        stretches.pop(0 if first < last else -1)
    return torch.tensor(stretches) if len(stretches) == len(points) else points
