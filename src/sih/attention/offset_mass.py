"""Attention by offset, and the period that explains it.

The construction's second-layer head h attends to the offsets i - i' = h modulo K, all
with equal weight (paper, Sec. 5.2). A trained head of this kind has its mass on one
residue *and* far from the query. A head that only copies a neighbour has it on one
offset.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def offset_profile(attention: Float[Tensor, "batch query key"]) -> Float[Tensor, " offset"]:
    """Return one head's mean attention at every offset.

    The mean is over sequences and over the queries of the second half.
    """
    time = attention.shape[-1]
    mean = attention[:, time // 2 :].mean(dim=0)
    at_offset = (mean.diagonal(time // 2 - o).sum() for o in range(time))
    return torch.stack(list(at_offset)) / len(mean)


def find_period(mass: Float[Tensor, " offset"]) -> tuple[int | None, tuple[int, ...], float]:
    r"""Return the least period of attention by offset, its residues, and the fit.

    The residues are those above average. The fit of a period n is the share of the
    variance that the n means by residue explain, adjusted for their number:
    $1 - (1 - R^2) (N - 1) / (N - n)$ with N offsets. Only periods that N holds twice
    count. The result is the least of them with 0.85 of the best fit, if that explains a
    tenth. There is no period if attention is the same at all offsets, or less than a
    hundredth in all.

    >>> find_period(torch.tensor([0.0, 1.0, 1.0, 0.0]).repeat(8))
    (4, (1, 2), 1.0)
    """
    x = mass.double() - mass.double().mean()
    total, count = x.square().sum().item(), len(x)
    if total <= 1e-8 * mass.double().square().sum().item() or mass.sum() < 0.01:
        return None, (), 0.0
    means = {n: [x[r::n].mean().item() for r in range(n)] for n in range(2, count // 2 + 1)}
    fits = {
        n: 1 - (1 - _explained(x, rows) / total) * (count - 1) / (count - n)
        for n, rows in means.items()
    }
    best = max(fits.values(), default=0.0)
    if best < 0.1:
        return None, (), 0.0
    period = next(n for n, fit in fits.items() if fit >= 0.85 * best)
    return period, tuple(r for r, mean in enumerate(means[period]) if mean > 0), fits[period]


def _explained(x: Float[Tensor, " offset"], means: Sequence[float]) -> float:
    return sum(mean**2 * len(x[r :: len(means)]) for r, mean in enumerate(means))
