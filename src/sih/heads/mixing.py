r"""Closed form of the exact posterior with K - 1 heads, for K lags in progression.

The progression is arithmetic. This is for absolute positions. With relative ones a
single head serves any lags (`sih.circuits.relative`).

Let $\theta$ run over the roots in $(0, \pi]$ of $\tan(N\theta/2) = N \tan(\theta/2)$:
one in each $(2\pi j/N,\, 2\pi(j + \tfrac12)/N)$, $1 \le j \le (N-2)/2$, and $\pi$ if N
is odd. With $c = 6 / (N(N^2 - 1))$ and
$r_\theta = 2(N^2 + \cot^2(\theta/2)) / (N(N^2-1))$, half of that at $\pi$,

$$-c\,x^2 + \sum_\theta r_\theta \cos \theta x = [x = 0] + \text{constant}, \qquad |x| < N.$$

*Proof* (Caratheodory and Fejer). Minus the second difference of the left side is
$t_x = \sum_\lambda \rho_\lambda \lambda^x$ over the atoms $\lambda = 1$ and
$e^{\pm i\theta}$. It must be t = (2, -1, 0, .., 0), N - 1 entries. Its Toeplitz matrix
is $T = \mathrm{tridiag}(-1, 2, -1) > 0$. The largest mass that can be subtracted at
$\lambda = 1$ is $1 / (1^\top T^{-1} 1) = 2c$, as $(T^{-1} 1)_x = x(N - x)/2$. The rest
has rank N - 2 and lives on the roots of $\sum_x x(N-x) z^x$, all on the circle: the
equation above. $T = V \rho V^*$ gives
$\rho_\lambda = 1 / (e_\lambda^* T^{-1} e_\lambda)$, and
$r = \rho / (4 \sin^2(\theta/2))$. With the atom 1 the constant is among the functions
of o that the heads have to span. Without it all of them have mean 0, and no weights
would be positive.

So $f_o(x) = \sum_h u_h(o)\,g_h(o + x)$ is $[x=0]$ and terms common to all lags, with N
- 1 heads. One head has u = 1. Each $\theta < \pi$ has two, with
$u = 1 + \eta\cos\theta o$ and $1 + \eta\sin\theta o$. $\pi$ has one, with
$1 + \eta(-1)^o$. Any set of lags is part of a progression with a step d.
$\lfloor o/d \rfloor$ and $\lfloor n/d \rfloor$ take the place of o and n, since $n - o$
is a multiple of d.
"""

import math
from collections.abc import Sequence

import torch

from sih.heads.profiles import Profile
from sih.task import check_lags

ETA = 0.9
"""Amplitude of the weights about 1. They stay above 0.1, and the waves' reads are
divided by it."""
BISECTIONS = 60


def angles(count: int) -> list[float]:
    r"""Return the roots $\theta$ for a progression of `count` lags, increasing."""

    def sign(half: float) -> bool:
        return count * math.cos(count * half) * math.sin(half) > math.sin(count * half) * math.cos(
            half
        )

    found = []
    for j in range(1, (count - 2) // 2 + 1):
        low, high = j * math.pi / count, (j + 0.5) * math.pi / count
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if sign(middle) == sign(low) else (low, middle)
        found.append(low + high)
    return [*found, math.pi] if count % 2 and count > 1 else found


def parabola_and_waves(count: int) -> tuple[float, dict[float, float]]:
    """Return c, and r by angle."""
    cube = count * (count**2 - 1)
    waves = {
        t: (1 if t == math.pi else 2) * (count**2 + math.tan(t / 2) ** -2) / cube
        for t in angles(count)
    }
    return 6 / cube, waves


def progression(lags: Sequence[int]) -> tuple[int, int]:
    """Return the step and the number of lags of the shortest arithmetic progression
    that contains these lags.
    """
    step = math.gcd(*(lag - lags[0] for lag in lags)) or 1
    return step, (lags[-1] - lags[0]) // step + 1


def mixing_profile(lags: Sequence[int], length: int) -> Profile:
    """Return the exact circuit with mixed heads, one fewer than members.

    The members are those of the arithmetic progression around these lags, two or more.

    >>> mixing_profile((1, 2, 3), length=64).heads
    2
    """
    lags = check_lags(lags)
    step, count = progression(lags)
    span = lags[-1] - lags[0]
    o = torch.arange(length - lags[-1]).div(step, rounding_mode="floor").to(torch.float64)
    n = torch.arange(-span, length - lags[0]).div(step, rounding_mode="floor").to(torch.float64)
    c, waves = parabola_and_waves(count)
    weights, reads = [torch.ones_like(o)], []
    for theta, r in waves.items():
        for wave in (torch.cos,) if theta == math.pi else (torch.cos, torch.sin):
            weights.append(1 + ETA * wave(theta * o))
            reads.append(r / ETA * wave(theta * n))
    first = -c * n**2 - sum(reads, torch.zeros_like(n))
    return Profile(lags, length, torch.stack(weights), torch.stack([first, *reads]))


def exact_profile(lags: tuple[int, ...], length: int, most: int) -> Profile | None:
    """Return the exact circuit with the fewest heads known, or None.

    It is None if that needs more than `most`.
    """
    if len(lags) < 2 or length <= lags[-1] or progression(lags)[1] - 1 > most:
        return None
    return mixing_profile(lags, length)
