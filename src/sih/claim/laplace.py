r"""A short sum of exponentials for $1/x = \int_0^\infty e^{-tx}\,dt$, with a bound on
its error.
"""

import functools
import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ReciprocalRule:
    r"""The approximation $1/x \approx \sum_j w_j e^{-t_j x}$ with relative `error` for
    x in its range.

    Below that range, for x >= 0, the sum is at most $(1 + \text{error})/x$.
    """

    nodes: Float[Tensor, " node"]
    weights: Float[Tensor, " node"]
    error: float

    def __call__(self, x: Float[Tensor, " point"]) -> Float[Tensor, " point"]:
        return torch.exp(-x[:, None] * self.nodes) @ self.weights


@functools.lru_cache(maxsize=64)
def reciprocal_rule(smallest: float, largest: float, tolerance: float) -> ReciprocalRule:
    r"""Return the trapezoidal rule in u after $t = \exp(u - e^{-u})$, with the widest
    step that meets `tolerance`.

    The substitution makes the integrand fall off double-exponentially on both sides.
    Towards large t it is $t \approx e^u$: the trapezoidal error of
    $\int e^{u - x e^u} du$ is $O(e^{-\pi^2/h})$ *relative to 1/x for every x alike*
    (its Poisson sum is $\Gamma(1 + 2\pi i n/h)\,x^{-2\pi i n/h}/x$), so one rule serves
    all x and the number of nodes grows with $\log(\text{largest}/\text{smallest})$
    only.

    `error` is measured: the largest relative error over 40 values of x per step. In log
    x the error is a smooth ripple with the step as its wavelength, so such a grid finds
    its crests to 1 %; 2 % is added.
    """
    if not 0 < smallest < largest:
        raise ValueError(
            f"a rule for 1/x needs 0 < smallest < largest; got {smallest:g} and {largest:g}"
        )
    if not 1e-14 <= tolerance < 1:
        raise ValueError(
            f"tolerance is a relative error from 1e-14 up to 1, e.g. 1e-12; got {tolerance:g}"
        )
    span = math.log(largest / smallest)
    step = math.pi**2 / (2 - math.log(tolerance))
    while True:
        u = torch.arange(
            -4.0, span + math.log(5 - math.log(tolerance)) + step, step, dtype=torch.float64
        )
        nodes = torch.exp(u - torch.exp(-u))
        weights = step * nodes * (1 + torch.exp(-u))
        used = weights > 1e-3 * tolerance
        rule = ReciprocalRule(nodes[used] / largest, weights[used] / largest, tolerance)
        points = 40 * math.ceil(span / step) + 2
        x = torch.logspace(math.log10(smallest), math.log10(largest), points, dtype=torch.float64)
        error = 1.02 * (x * rule(x) - 1).abs().max().item()
        if error <= tolerance:
            return replace(rule, error=error)
        step *= 0.97
