r"""The KL of lag scores $\sum_o F_o q_{i-o}$ relative to Bayes, and descent on it.

It is measured on fresh matrices and their sequences, so nothing depends on a single P.
Rows are drawn from Dirichlet(1), with `SHARED` sequences for each matrix. The
divergence of the mixture $\sum_k w_{i,k} P_{s_{i-k+1},\cdot}$ from the true
distribution is computed, not sampled, at every position from max_lag on. It is divided
by that of the exact posterior on the same matrix, so that every matrix has the same
weight.

$J F_o J$ depends only on the second differences of the query's reads within reach,
because a line is common to all lags. So their curvature is a variable of its own.
Without it, bending a parabola over the whole past would take many steps.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.heads.read_fit import ReadProblem

STATES = 5
BATCH = 100
RATE, CURVING = 0.1, 0.003
"""First rates of log u and reads, and of curvature. They follow a cosine schedule."""
SHARED = 20


class Fresh(NamedTuple):
    """Sequences of fresh tasks as predictors see them.

    The last axis is positions, from max_lag on.
    """

    spectrum: Float[Tensor, "frequency size part"]
    """Fourier transform of log p less its mean over lags: real parts of all lags, then
    imaginary ones."""
    laws: Float[Tensor, "size lag state offset"]
    """The distribution of the next token under each lag."""
    own: Float[Tensor, "size state offset"]
    """The distribution of the next token under the true lag."""
    bayes: Float[Tensor, " size"]
    """The divergence of the exact posterior's prediction from the truth, averaged over
    the sequences of the matrix."""

    def part(self, first: int, last: int) -> "Fresh":
        """Return the sequences from `first` to before `last`, without copying."""
        return Fresh(self.spectrum[:, first:last], *(rest[first:last] for rest in self[1:]))


def draw_fresh(
    lags: tuple[int, ...],
    length: int,
    size: int,
    rng: torch.Generator,
    dtype: torch.dtype = torch.float64,
) -> Fresh:
    """Return `size` sequences (a multiple of `SHARED`) in random order.

    Each lag is the true one equally often.
    """
    first, each = lags[-1], torch.randperm(size, generator=rng)
    P = torch.empty(size // SHARED, STATES, STATES, dtype=torch.float64).exponential_(generator=rng)
    P = (P / P.sum(dim=-1, keepdim=True)).view(-1, STATES)
    row = each.div(SHARED, rounding_mode="floor") * STATES
    tokens = _walks(P, row, torch.tensor(lags)[each % len(lags)], length, first, rng)
    parents = torch.stack([tokens[first - k : length - k] for k in lags])
    logs = P.log().flatten()[(row + parents) * STATES + tokens[first:]]
    evidence = (logs - logs.mean(dim=0)).permute(2, 0, 1)
    copied = torch.stack([tokens[first - k + 1 : length - k + 1] for k in lags])
    laws = P.to(dtype)[row + copied].permute(2, 0, 3, 1).contiguous()
    own = laws[torch.arange(size), each % len(lags)]
    spectrum = torch.fft.rfft(evidence, _padded(length - first))
    parts = torch.cat([spectrum.real, spectrum.imag], dim=1).permute(2, 0, 1).to(dtype).contiguous()
    fresh = Fresh(parts, laws, own, torch.ones(size, dtype=dtype))
    best = _kl(evidence.cumsum(dim=-1).to(dtype), fresh)
    of_matrix = torch.zeros(size // SHARED, dtype=dtype).index_add_(
        0, each.div(SHARED, rounding_mode="floor"), best
    )
    return fresh._replace(bayes=of_matrix[each.div(SHARED, rounding_mode="floor")] / SHARED)


def _walks(
    P: Float[Tensor, "row state"],
    row: Int[Tensor, " size"],
    lag: Int[Tensor, " size"],
    length: int,
    first: int,
    rng: torch.Generator,
) -> Int[Tensor, "length size"]:
    """Return sequences with these lags.

    `row` is the first row in P of each one's matrix.
    """
    below, each = P.cumsum(dim=-1)[:, :-1].contiguous(), torch.arange(len(row))
    tokens = torch.randint(STATES, (length, len(row)), generator=rng)
    chance = torch.rand(length, len(row), 1, generator=rng, dtype=torch.float64)
    for n in range(first, length):
        tokens[n] = (chance[n] > below[row + tokens[n - lag, each]]).sum(dim=-1)
    return tokens


def fresh_kl(F: Float[Tensor, "offset lag lag"], fresh: Fresh) -> Float[Tensor, ""]:
    """Return the mean KL relative to Bayes, with a transition's evidence weighted by F.

    F is by offset.
    """
    time, count = fresh.laws.shape[-1], F.shape[-1]
    filters = torch.fft.rfft(F.mT.to(fresh.laws.dtype), _padded(time), dim=0)
    real, imaginary = filters.real, filters.imag  # as real numbers, which are multiplied faster
    rows = [torch.cat([real, imaginary], dim=2), torch.cat([-imaginary, real], dim=2)]
    moved = torch.bmm(fresh.spectrum, torch.cat(rows, dim=1)).permute(1, 2, 0)
    scores = torch.fft.irfft(torch.complex(moved[:, :count], moved[:, count:]), _padded(time))[
        ..., :time
    ]
    return (_kl(scores, fresh) / fresh.bayes).mean()


def _padded(time: int) -> int:
    """Return a length at which a convolution does not wrap around."""
    return 1 << (2 * time - 1).bit_length()


def _kl(scores: Float[Tensor, "size lag offset"], fresh: Fresh) -> Float[Tensor, " size"]:
    """Return each sequence's mean divergence of the scores' mixture from the truth."""
    law = (torch.softmax(scores, dim=1)[:, :, None] * fresh.laws).sum(dim=1)
    return (fresh.own * (fresh.own / law).log()).sum(dim=1).mean(dim=-1)


def descended(
    problem: ReadProblem,
    weights: Float[Tensor, "head offset"],
    g: Float[Tensor, "side head place"],
    fresh: Fresh,
    steps: int,
) -> tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]:
    """Return weights and reads after `steps` steps of Adam on the divergence.

    The sequences are used in turn.
    """
    log_u, reads = weights.log().requires_grad_(), g.clone().requires_grad_()
    curvature = torch.zeros_like(g[0]).requires_grad_()
    groups = [{"params": [log_u, reads], "lr": RATE}, {"params": [curvature], "lr": CURVING}]
    optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _, batch in zip(range(steps), _batches(fresh), strict=False):
        curved = torch.stack([reads[0] + _curve(curvature), reads[1]])
        loss = fresh_kl(problem.matrices(problem.widened(log_u.exp()), curved), batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return log_u.exp(), torch.stack([reads[0] + _curve(curvature), reads[1]])


def _batches(fresh: Fresh) -> Iterator[Fresh]:
    """Yield parts of all sequences, again and again."""
    size = len(fresh.bayes)
    while True:
        yield from (fresh.part(n, n + BATCH) for n in range(0, max(size - BATCH, 0) + 1, BATCH))


def _curve(curvature: Float[Tensor, "head place"]) -> Float[Tensor, "head place"]:
    """Return the curve with these second differences that is 0 and flat in the
    middle.
    """
    middle = curvature.shape[-1] // 2
    slope = curvature.cumsum(dim=-1)
    slope = slope - slope[:, middle, None]
    curve = slope.cumsum(dim=-1)
    return curve - curve[:, middle, None]
