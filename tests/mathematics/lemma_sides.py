"""What the lemmas of docs/proofs compare, in numbers: integrands, and the bounds that are proved."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.task.matrices import stationary_distribution

Points = Float[Tensor, "*point"]
Sides = tuple[Points, Points]
"""An integrand, and the difference of potentials that it is never below."""


def quotient(a: Tensor, b: Tensor) -> Tensor:
    """a / b, where 0/0 counts as 0."""
    return a / torch.where(b > 0, b, 1.0)


def lemma_e_sides(y: Points, z: Points, rest: float) -> Sides:
    r"""Return y(y-z)/(y+z+R) and G(y) - G(z), $G(t) = t/2 - (R/4)\log(1 + 2t/R)$."""

    def potential(t: Tensor) -> Tensor:
        return t / 2 - (rest / 4 * torch.log1p(2 * t / rest) if rest else 0.0)

    return quotient(y * (y - z), y + z + rest), potential(y) - potential(z)


def lemma_b_sides(y: Points, companion: Points, z: Points, rest: float) -> Sides:
    r"""Return (y-z)(y-y')/(y+y'+z+R) and G(y) - G(y'), $G(t) = t/2 - \tfrac34 z\log(2t+z)$ after the shift by R/3."""
    y, companion, z = (value + rest / 3 for value in (y, companion, z))

    def potential(t: Tensor) -> Tensor:
        return t / 2 - 0.75 * torch.xlogy(z, 2 * t + z)

    return quotient((y - z) * (y - companion), y + companion + z), potential(y) - potential(
        companion
    )


def lemma_t_sides(a: Points, b: Points, c: Points, rest: float) -> Sides:
    """Return 9a(a-b)/(a+b+c+R) and 3[A(a)-A(b)] + V(a,b) - V(b,c)."""
    m = rest / 3
    left = quotient(9 * a * (a - b), a + b + c + rest)
    a, b, c = a + m, b + m, c + m

    def single(t: Tensor) -> Tensor:
        return t - m * torch.log(t) if m else t

    def pair(p: Tensor, q: Tensor) -> Tensor:
        return quotient(1.5 * (p - q) ** 2 * (p + q - 2 * m), (p + q) ** 2)

    return left, 3 * (single(a) - single(b)) + pair(a, b) - pair(b, c)


def h(y: Points, t: Points) -> Points:
    """Return (t-y)^2/2y for t <= 2y and t - 3y/2 beyond: a parabola that goes on as its tangent."""
    return torch.where(t <= 2 * y, quotient((t - y) ** 2, 2 * y), t - 1.5 * y)


def g(z: Points, t: Points) -> Points:
    """Return t - z - z log(t/z) for t >= z/2, and its second-order continuation below."""
    near = t - z - torch.xlogy(z, t / torch.where(z > 0, z, 1.0))
    far = z * (math.log(2) - 0.5) + (z / 2 - t) + quotient(2 * (z / 2 - t) ** 2, z)
    return torch.where(t >= z / 2, near, far)


def weighted_g(z: Points, t: Points, m: float) -> Points:
    """Return G_z(t): ξ(z) g_z(t) up to z, and beyond it the integral of (1-m/x)(1-z/x) from z to t."""

    def primitive(x: Tensor) -> Tensor:
        return x - (m + z) * torch.log(x) - m * z / x

    beyond = torch.maximum(t, z)
    return (
        torch.where(t <= z, (1 - m / z) * g(z, t), primitive(beyond) - primitive(z))
        if m
        else g(z, t)
    )


def lemma_d_sides(
    y: Points,
    z: Points,
    companions: Float[Tensor, "*point companion"],
    rival_companion: Points | None,
    rest: float,
) -> Sides:
    """Return kappa^2 times the integrand of Lemma D, and the bound with mean 0 that it is never below."""
    beta = rival_companion is not None
    other = z if rival_companion is None else rival_companion
    kappa = 2 + companions.shape[-1] + beta
    m = rest / kappa
    total = y + z + companions.sum(dim=-1) + beta * other + rest
    left = quotient(kappa**2 * y * (y - z), total)
    xi = y / (y + m) if m else torch.ones_like(y)
    y, z, other, companions = y + m, z + m, other + m, companions + m

    def single(t: Tensor) -> Tensor:
        return t - m * torch.log(t) if m else t

    own = (
        weighted_g(z, y, m)[..., None]
        - weighted_g(z[..., None].expand_as(companions), companions, m)
    ).sum(dim=-1)
    return left, kappa * (single(y) - single(z)) + beta * xi * (h(y, z) - h(y, other)) + own


def lemma_m_ends(z: Points, companion: Points, rest: float) -> Sides:
    """Return E and (1-1/κ)E + B - 5/4, both never below 0, for a mean of 1 and the mean `companion` of Z' and Z''."""
    kappa = 4 + rest
    b, c, W = z - 1, companion - 1, z + 2 * companion + rest
    E = b * (b + 2 * c) / (1 + W) + b**2 / (4 * (kappa + b)) + c**2 / (kappa + c)
    B = kappa * (W + z) * torch.clamp(W, max=kappa - 1) / (1 + W) ** 2
    return E, (1 - 1 / kappa) * E + B - 1.25


@dataclass(frozen=True, eq=False)
class Ends:
    """N, D, M and M' for each matrix. The gap of the true lag to the end of the row is (N - D)/2."""

    N: Float[Tensor, "*matrix"]
    D: Float[Tensor, "*matrix"]
    M: Float[Tensor, "*matrix"]
    M_older: Float[Tensor, "*matrix"]

    @property
    def gap(self) -> Float[Tensor, "*matrix"]:
        return (self.N - self.D) / 2


def ends(P: Float[Tensor, "*matrix state state"], steps: int = 1) -> Ends:
    """Return the sums over all paths of three states, neighbours `steps` steps of P apart."""
    Q = torch.linalg.matrix_power(P, steps)
    weight = (
        stationary_distribution(P)[..., :, None, None] * Q[..., :, :, None] * Q[..., None, :, :]
    )
    c, b, a = (
        P[..., :, None, None, :],
        P[..., None, :, None, :],
        P[..., None, None, :, :],
    )  # (X_3, X_2, X_1, s)
    total = a + b + c

    def mean(value: Tensor) -> Tensor:
        found: Tensor = (weight * quotient(value, total).sum(dim=-1)).sum(dim=(-3, -2, -1))
        return found

    return Ends(mean((a - c) ** 2), mean(b * (a - c)), mean((a - b) ** 2), mean((b - c) ** 2))


def staying_bound(P: Float[Tensor, "*matrix state state"]) -> Float[Tensor, "*matrix"]:
    """Return the lower bound (2) on N - D for lags {1, 2, 3}."""
    rows, others = P[..., :, None, :], P[..., None, :, :]
    distance = quotient((rows - others) ** 2, rows + others).sum(dim=-1)
    stay = P.diagonal(dim1=-2, dim2=-1)
    factor = (8 * stay[..., :, None] + 5 * stay[..., None, :] + P.mT - 1) / 12
    return (stationary_distribution(P)[..., None] * P * distance * factor).sum(
        dim=(-2, -1)
    )  # distance 0 at i = j


def overlap(P: Float[Tensor, "*matrix state state"]) -> Float[Tensor, "*matrix"]:
    """Return θ of (3), the least P(x, s)/π(s)."""
    return (P / stationary_distribution(P)[..., None, :]).amin(dim=(-2, -1))
