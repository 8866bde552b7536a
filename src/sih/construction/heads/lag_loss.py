r"""The loss of scores $\sum_o F_o q_{i-o}$ on a model of evidence that knows no P, and descent on it.

A transition shows each wrong lag a probability drawn from Beta(1, S - 1), an entry of a random row of S states, and the
true lag one from Beta(2, S - 1), the same given that it happened, all independent: what a fresh P would show for every
pair of tokens. The excess log-loss of the mixture with weights w is then $-\log \sum_k w_k p_k / p_{true}$, exactly.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.construction.heads.read_fit import ReadProblem

STATES = 5
STEPS = 1200
BATCH = 40
RATE = 0.05


def evidence(
    lags: int, offsets: int, size: int, rng: torch.Generator
) -> tuple[Float[Tensor, "size offset lag"], Int[Tensor, " size"]]:
    """Draw the probabilities that each lag gives each of so many tokens, and which lag is true, all alike often."""
    true = torch.arange(size) % lags

    def gamma(shape: int) -> Float[Tensor, "size offset lag"]:
        drawn = torch.empty(shape, size, offsets, lags, dtype=torch.float64)
        return drawn.exponential_(generator=rng).sum(dim=0)

    own = gamma(1) + gamma(1) * (torch.arange(lags) == true[:, None, None])
    return own / (own + gamma(STATES - 1)), true


def excess_loss(
    F: Float[Tensor, "offset lag lag"], p: Float[Tensor, "size offset lag"], true: Int[Tensor, " size"]
) -> Float[Tensor, ""]:
    """Return the mean excess log-loss of predicting each token from those before it."""
    time = p.shape[1] - 1
    seen = p[:, :-1].log()
    q = torch.fft.rfft(seen - seen.mean(dim=-1, keepdim=True), 2 * time, dim=1)
    scores = torch.fft.irfft(torch.einsum("fkl,bfl->bfk", torch.fft.rfft(F[:time], 2 * time, dim=0), q), dim=1)[
        :, :time
    ]
    mixed = (torch.softmax(scores, dim=-1) * p[:, 1:]).sum(dim=-1)
    return -(mixed / p[torch.arange(len(p)), 1:, true]).log().mean()


def descended(
    problem: ReadProblem, weights: Float[Tensor, "head offset"], g: Float[Tensor, "side head place"]
) -> tuple[Float[Tensor, "head offset"], Float[Tensor, "side head place"]]:
    """Improve weights and reads by Adam on the loss, with fresh draws at every step."""
    rng = torch.Generator().manual_seed(0)
    log_u, reads = weights.log().requires_grad_(), g.clone().requires_grad_()
    optimiser = torch.optim.Adam([log_u, reads], lr=RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for _ in range(STEPS):
        p, true = evidence(len(problem.lags), problem.offsets, BATCH, rng)
        loss = excess_loss(problem.matrices(problem.widened(log_u.exp()), reads), p, true)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return log_u.detach().exp(), reads.detach()
