"""Tabulates the cost of exact circuits with K - 1 heads for the lags 1 .. K, for several weights of the first head.

    python research/any_weights.py --out any_weights.csv

Each row is of one K. It has the size of the closed form (`Profile.size`), and the sizes of other choices over it: other
swings and phases of the waves, reads that are not moved, and weights that arch over the past. The certified error is
proportional to the size to the power 2/3 (`sih.circuits.tempering`, two first-layer heads). What follows from the table
is in docs/results/head-counts.md, "Which weights cost the fewest digits?".
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.files import check_place, write_rows
from sih.heads.mixing import ETA, angles, mixing_profile, parabola_and_waves
from sih.heads.profiles import Profile

ARCHES = (0.2, 0.3, 0.4, 0.5)
"""How much less the newest and the oldest offsets weigh than those between, in a logarithm."""


def profile_from_weights(
    count: int,
    length: int,
    weight: Callable[[Float[Tensor, " offset"]], Float[Tensor, " offset"]],
    *,
    eta: float = ETA,
    phase: float = 0.0,
) -> Profile:
    r"""Write the exact circuit for the lags 1 .. count whose first head has these positive weights, by offset.

    The other heads are the first plus waves that start with this phase and swing by at most `eta` of it.

    Let $\gamma_h(n) = 2 g_h(n) - g_h(n-1) - g_h(n+1)$. By the criterion the array
    $N[o, n] = \sum_h u_h(o)\,\gamma_h(n)$ is prescribed for $|n - o| \le K - 2$: it is $t_{n-o}$, t = (2, -1, 0, ..).
    K - 1 rows and columns in a row are $T = \mathrm{tridiag}(-1, 2, -1)$, of full rank. So K - 1 heads mean that N has
    rank K - 1, and each further row is a combination of the K - 1 rows before it,

    $$ u_h(o + K - 1) = (y\,e_1 - e_{K-1})^\top T^{-1}\,(u_h(o), \dots, u_h(o + K - 2)), $$

    with one free number $y = N[o + K - 1, o]$ an offset, the same for all heads. For positive $u_1$ everything that $y$
    is divided by is positive, as $T^{-1}$ is: **any positive weights may be those of one head**, and then y, the other
    heads up to a change of basis, and all reads are fixed. Weights 1 have $y = (K+1)/(K-1)$ throughout: the closed form
    of `mixing.py`, where y is the entry by which Caratheodory and Fejer extend t.

    **What it costs.** Rounding is of the size of $\sum_h C_h \max |B_h|$ (`Profile.size`), where B is g moved by
    whatever rows and columns share. Four corners of B give $\max |B| \ge \tfrac14 |\sum_n \min(n, T - n)\,\gamma(n)|$.
    For two lags $\gamma = 2 / u$, and by Cauchy and Schwarz the size is at least
    $\tfrac12 (\sum_n \sqrt{\min(n, T-n)})^2 = T^3 / 9$ for any positive weights, where uniform ones have $T^3 / 8$: no
    weights save more than a ninth.

    >>> profile_from_weights(3, 32, torch.ones_like).heads
    2
    """
    heads, offsets = count - 1, length - count
    beyond = count - 2  # offsets before 0, and past the last, that reads at the ends are settled by
    o = torch.arange(-beyond, offsets + 2 * beyond, dtype=torch.float64)
    first = weight(o)
    T = 2 * torch.eye(heads, dtype=torch.float64)
    T[range(1, heads), range(heads - 1)] = T[range(heads - 1), range(1, heads)] = -1.0
    inverse = torch.linalg.inv(T)
    waves = [
        wave(theta * o[:heads] + phase)
        for theta in angles(count)
        for wave in (torch.cos, torch.sin)
    ][: heads - 1]
    rows = list(torch.stack([first[:heads], *(first[:heads] * wave for wave in waves)], dim=1))
    for n in range(heads, len(o)):
        newest = inverse[[0, -1]] @ torch.stack(rows[-heads:])
        y = (first[n] + newest[1, 0]) / newest[0, 0]
        rows.append(y * newest[0] - newest[1])
    u = torch.stack(rows, dim=1)
    swings = u[1:] / first
    u[1:] = first * (1 + eta * swings / swings.abs().amax(dim=1, keepdim=True))
    windows = u.unfold(1, heads, 1)  # the K - 1 rows in which column n, too, is prescribed
    curves = torch.linalg.solve(windows.permute(1, 2, 0), T[:, 0])
    g = _read(curves)
    return Profile(
        tuple(range(1, count + 1)), length, u[:, beyond : beyond + offsets], g.T.contiguous()
    )


def _read(curves: Float[Tensor, "index head"]) -> Float[Tensor, "longer head"]:
    """Sum minus second differences twice, from 0 and 0 on: two numbers more."""
    slopes = torch.cat([torch.zeros_like(curves[:1]), -curves.cumsum(dim=0)])
    return torch.cat([torch.zeros_like(curves[:1]), slopes.cumsum(dim=0)])


def relative_sizes(count: int, length: int) -> dict[str, float]:
    """Return the sizes of other choices for the lags 1 .. count over that of the closed form, whose own is first."""
    closed = mixing_profile(range(1, count + 1), length)
    c, _ = parabola_and_waves(count)
    waves = closed.query[1:].abs().amax(dim=1)
    product = closed.totals[0] * (c * length**2 / 2 + waves.sum()) + closed.totals[1:] @ waves

    def arched(height: float) -> Profile:
        turn = 2 * math.pi / (length - count)
        return profile_from_weights(
            count, length, lambda o: (-height * (turn * (o + 0.5)).cos()).exp()
        )

    found = {
        f"eta {eta}": profile_from_weights(count, length, torch.ones_like, eta=eta)
        for eta in (0.3, 0.5, 0.99)
    }
    found |= {
        f"phase {phase}": profile_from_weights(count, length, torch.ones_like, phase=phase)
        for phase in (0.8, 2.4)
    }
    return {
        "closed form": closed.size,
        "reads not moved": float((closed.totals * closed.query.abs().amax(dim=1)).sum())
        / closed.size,
        "reads as a product about the middle": float(product) / closed.size,
        **{name: profile.size / closed.size for name, profile in found.items()},
        "best arched weights": min(arched(height).size for height in ARCHES) / closed.size,
    }


def main(words: Sequence[str] | None = None) -> int:
    """Write the table. The exit code is 0, 2 if a flag is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[2, 3, 4, 5, 6, 7, 8], help="numbers of lags, K"
    )
    parser.add_argument("--length", type=int, default=128, help="tokens of a sequence")
    parser.add_argument("--out", type=Path, required=True, help="the table, a .csv file")
    given = parser.parse_args(words)
    try:
        check_place(given.out)
        if min(given.counts) < 2:
            raise ValueError(
                f"--counts are numbers of lags, 2 or more, e.g. 2 3 4; got {min(given.counts)}"
            )
        sizes = {count: relative_sizes(count, given.length) for count in given.counts}
        names = list(sizes[given.counts[0]])
        rows = [
            [str(count), *(f"{sizes[count][name]:.3f}" for name in names)] for count in given.counts
        ]
        write_rows(given.out, [["K", *names], *rows])
    except ValueError as error:
        print(f"any_weights: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
