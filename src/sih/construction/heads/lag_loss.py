r"""KL over that of Bayes, if lags score $\sum_o F_o q_{i-o}$, on fresh matrices and their sequences; descent on it.

Nothing of it depends on a P: rows are drawn from Dirichlet(1), `SHARED` sequences to a matrix. The divergence of the
mixture $\sum_k w_{i,k} P_{s_{i-k+1},\cdot}$ from the true law is computed, not sampled, at every position from max_lag
on, and divided by that of the exact posterior on the same matrix, so that every matrix counts alike.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.construction.heads.read_fit import ReadProblem

STATES = 5
STEPS = 2000
BATCH = 40
RATE = 0.05
SHARED = 20
DRAWN, USED = 2000, 200
"""Sequences drawn at once, and for how many steps batches are picked from them."""


class Fresh(NamedTuple):
    """Holds sequences of fresh tasks as what predictors see of them, positions from max_lag on along the last axis."""

    evidence: Float[Tensor, "size lag offset"]
    """log p, less its mean over lags."""
    laws: Float[Tensor, "size lag state offset"]
    """The law of the next token, if this were the lag."""
    true: Int[Tensor, " size"]
    bayes: Float[Tensor, " size"]
    """The divergence of the exact posterior's prediction from the truth, a mean over the sequences of the matrix."""


def draw_fresh(lags: tuple[int, ...], length: int, size: int, rng: torch.Generator) -> Fresh:
    """Draw so many sequences, a multiple of `SHARED`; all lags are true alike often."""
    first, each = lags[-1], torch.arange(size)
    P = torch.empty(size // SHARED, STATES, STATES, dtype=torch.float64).exponential_(generator=rng)
    P = (P / P.sum(dim=-1, keepdim=True)).repeat_interleave(SHARED, dim=0)
    below = P.cumsum(dim=-1)[..., :-1]
    true = each % len(lags)
    lag = torch.tensor(lags)[true]
    tokens = torch.randint(STATES, (length, size), generator=rng)
    chance = torch.rand(length, size, 1, generator=rng, dtype=torch.float64)
    for n in range(first, length):
        tokens[n] = (chance[n] > below[each, tokens[n - lag, each]]).sum(dim=-1)
    parents = torch.stack([tokens[first - k : length - k] for k in lags])
    copied = torch.stack([tokens[first - k + 1 : length - k + 1] for k in lags])
    logs = P.log()[each, parents, tokens[first:]]
    evidence = (logs - logs.mean(dim=0)).permute(2, 0, 1).contiguous()
    fresh = Fresh(evidence, P[each, copied].permute(2, 0, 3, 1).contiguous(), true, torch.ones(size))
    best = _kl(evidence.cumsum(dim=-1), fresh).view(-1, SHARED).mean(dim=1)
    return fresh._replace(bayes=best.repeat_interleave(SHARED))


def fresh_kl(F: Float[Tensor, "offset lag lag"], fresh: Fresh) -> Float[Tensor, ""]:
    """Return the mean KL over that of Bayes, if a transition's evidence counts by F at its offset."""
    time = fresh.evidence.shape[-1]
    padded = 1 << (2 * time - 1).bit_length()
    filters = torch.fft.rfft(F.permute(1, 2, 0), padded)
    moved = torch.einsum("klf,blf->bkf", filters, torch.fft.rfft(fresh.evidence, padded))
    scores: Tensor = torch.fft.irfft(moved, padded)[..., :time]
    return (_kl(scores, fresh) / fresh.bayes).mean()


def _kl(scores: Float[Tensor, "size lag offset"], fresh: Fresh) -> Float[Tensor, " size"]:
    """Return each sequence's mean divergence of the mixture that these scores weigh from the true law."""
    law = (torch.softmax(scores, dim=1)[:, :, None] * fresh.laws).sum(dim=1)
    own = fresh.laws[torch.arange(len(law)), fresh.true]
    return (own * (own / law).log()).sum(dim=1).mean(dim=-1)


def descended(
    problem: ReadProblem, weights: Float[Tensor, "head offset"], g: Float[Tensor, "side head place"]
) -> tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]:
    """Improve weights and reads by Adam on the divergence, always in the same way."""
    rng = torch.Generator().manual_seed(0)
    length = problem.offsets + problem.lags[-1]
    log_u, reads = weights.log().requires_grad_(), g.clone().requires_grad_()
    optimiser = torch.optim.Adam([log_u, reads], lr=RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for step in range(STEPS):
        if step % USED == 0:
            drawn = draw_fresh(problem.lags, length, DRAWN, rng)
        picked = torch.randint(DRAWN, (BATCH,), generator=rng)
        loss = fresh_kl(problem.matrices(problem.widened(log_u.exp()), reads), Fresh(*(part[picked] for part in drawn)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return log_u.detach().exp(), reads.detach()
