r"""A task in which the lag switches within a sequence: a hidden Markov chain over lags.

The first max_lag tokens are stationary. After them token i follows lag $k_i$. The first
lag is uniform. From each token to the next the lag switches with probability r, to one
of the K - 1 others, uniformly. Exact Bayes is the forward filter: with
$f_{i,k} = \mathbb{P}(k_{i+1} = k, X_{\le i})$,

$$f_{i,k} = \sum_l f_{i-1,l}\, P_{s_{i-l},\,s_i}\, M_{lk}, \qquad M_{kk} = 1 - r, \quad M_{lk} = \tfrac{r}{K-1}.$$
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_number
from sih.task.batch import Batch
from sih.task.lags import Lagged, check_lags, check_length, check_prior
from sih.task.matrices import MatrixLike, as_transition_matrix
from sih.task.parents import KnownMatrix, OneHypothesis, one_hot

BLOCK = 128
"""Steps of the filter in one block. Longer sequences are split into blocks and filtered
in parallel."""


@dataclass(frozen=True, eq=False)
class SwitchingTask(Lagged, KnownMatrix, OneHypothesis):
    """A task in which the lag switches at a known rate within a sequence.

    `batch.lags` has the lag of each token, and 0 for the first max_lag tokens. `bma` is
    the exact Bayes predictor, and `lag_posterior` is the distribution of the next
    token's lag. With rate 0 this is `Task`.

    Args:
        P: (state, state), the transition matrix.
        lags: the lags that a token may follow, increasing.
        length: tokens in a sequence, more than the largest lag.
        rate: the probability, per token, of a switch to one of the other lags.

    >>> import sih
    >>> task = sih.SwitchingTask([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=12, rate=0.2)
    >>> sih.sample(task, size=1, rng=0).lags
    tensor([[0, 0, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1]])
    """

    P: Float[Tensor, "state state"]
    lags: tuple[int, ...]
    length: int
    rate: float

    def __init__(
        self,
        P: MatrixLike,
        lags: Sequence[SupportsIndex],
        length: SupportsIndex,
        rate: float = 0.02,
    ) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        assign(self, "P", as_transition_matrix(P))
        assign(self, "lags", check_lags(lags))
        assign(self, "length", check_length(length, self.lags))
        assign(self, "rate", check_rate(rate, len(self.lags)))
        assign(self, "lag_prior", check_prior(None, len(self.lags)))

    @property
    def switches(self) -> Float[Tensor, "lag lag"]:
        """Return the transition matrix M of the lag."""
        count = len(self.lags)
        other = self.rate / max(1, count - 1)
        return torch.full((count, count), other, dtype=torch.float64).fill_diagonal_(1 - self.rate)

    def draw_paths(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Int[Tensor, "batch time"]:
        steps = (len(first), self.length - self.max_lag - 1)
        uniform = torch.rand(steps, generator=rng, dtype=torch.float64, device=rng.device).to(
            first.device
        )
        onward = (
            (uniform / self.rate * (len(self.lags) - 1)).long() + 1
            if self.rate
            else torch.zeros_like(uniform).long()
        )
        moves = torch.where(
            uniform < self.rate, onward, 0
        )  # a jump of 1 .. K - 1 places, modulo K, always reaches another lag
        path = torch.cat([first[:, None], moves], dim=1).cumsum(dim=1) % len(self.lags)
        return torch.cat([path.new_full((len(first), self.max_lag), -1), path], dim=1)

    def true_weights(self, batch: Batch) -> Float[Tensor, "batch time lag"]:
        if batch.lags.shape != batch.tokens.shape:
            wanted = f"the lag of each token, of shape {tuple(batch.tokens.shape)}"
            raise FieldError("lags", f"lags must be {wanted}; got shape {tuple(batch.lags.shape)}")
        begin = min(self.max_lag, batch.lags.shape[1] - 1)
        first = batch.lags[
            :, begin : begin + 1
        ]  # the first tokens follow no lag: take the lag after them
        known = torch.cat([first.expand(-1, begin), batch.lags[:, begin:]], dim=1)
        of_tokens = one_hot(known, self.lags)
        return torch.cat(
            [of_tokens[:, 1:], of_tokens[:, -1:] @ self.switches.to(of_tokens.device)], dim=1
        )

    def log_likelihood(
        self, log_p: Float[Tensor, "batch time lag"]
    ) -> Float[Tensor, "batch time lag"]:
        first = self.max_lag
        if not self.rate or log_p.shape[1] <= first:
            return super().log_likelihood(log_p)
        log_f = log_filter(log_p[:, first:].cpu().numpy(), self.switches.numpy())
        found = torch.from_numpy(log_f).to(log_p.device) + math.log(len(self.lags))
        return torch.cat([log_p[:, :first], found], dim=1)

    def moved(self, log_joint: list[float]) -> list[float]:
        if not self.rate:
            return log_joint
        top = max(log_joint)
        weights = [math.exp(value - top) for value in log_joint]
        other = self.rate / (len(weights) - 1)
        mass = [(1 - self.rate) * weight + other * (sum(weights) - weight) for weight in weights]
        return [top + math.log(value) if value > 0 else -math.inf for value in mass]


def check_rate(rate: float, lags: int, name: str = "rate") -> float:
    """Return the rate if it is a probability, or raise a FieldError.

    It must be 0 for a single lag.
    """
    wanted = "the chance that the lag switches at a step, 0 to 1, e.g. 0.02"
    check_number(name, rate, 0, wanted=wanted)
    if not rate <= 1:
        raise FieldError(name, f"{name} is {wanted}; got {rate}")
    if rate > 0 and lags == 1:
        raise FieldError(
            name, f"{name} {rate} needs two lags or more to switch between; there is one"
        )
    return float(rate)


def log_filter(log_p: np.ndarray, switches: np.ndarray) -> np.ndarray:
    r"""Return $\log f_{i,k}$ at every step, $f_i = (f_{i-1} \circ p_i) M$ from
    $f_{-1} = 1/K$.

    The time is linear. Each step is divided by its sum, and the logarithms of these
    sums are added up. Each step mixes all lags with weight at least $r / (K - 1)$, so
    anything that then underflows is below rounding.

    A long sequence is cut into blocks. First each block is filtered from every possible
    first lag, for all blocks at once. Then follow the weights of the lags at the start
    of each block, and then the steps within the blocks.
    """
    (size, time, count), start = log_p.shape, np.full(switches.shape[0], 1 / switches.shape[0])
    if time <= BLOCK:
        return _steps(log_p, np.broadcast_to(start, (size, count)), switches)[0]
    block = max(BLOCK, math.isqrt(time))
    blocks = -(-time // block)
    padded = np.zeros((size, blocks * block, count))
    padded[:, :time] = log_p
    parts = padded.reshape(size * blocks, block, count)
    each = np.repeat(parts[:, None], count, axis=1).reshape(-1, block, count)  # one start per lag
    begin = np.tile(np.eye(count), (size * blocks, 1))
    last, scale = _steps(each, begin, switches, only_last=True)
    last, scale = last.reshape(size, blocks, count, count), scale.reshape(size, blocks, count)
    states, scales = np.empty((size, blocks, count)), np.zeros((size, blocks))
    state, total = np.broadcast_to(start, (size, count)), np.zeros(size)
    for index in range(blocks):
        states[:, index], scales[:, index] = state, total
        top = scale[:, index].max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        joined = np.einsum("bl,blk->bk", state * np.exp(scale[:, index] - top), last[:, index])
        mass = joined.sum(axis=-1, keepdims=True)
        state = joined / np.where(mass > 0, mass, 1.0)
        with np.errstate(divide="ignore"):
            total = total + (top + np.log(mass))[:, 0]
    found = _steps(parts, states.reshape(-1, count), switches)[0] + scales.reshape(-1, 1, 1)
    return found.reshape(size, -1, count)[:, :time]


def _steps(
    log_p: np.ndarray, state: np.ndarray, switches: np.ndarray, only_last: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return log f at every step, and the logarithm of its scale.

    With `only_last` it is the last f alone, which sums to 1, and the logarithm of its
    scale.
    """
    top = log_p.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    p = np.ascontiguousarray(np.exp(log_p - top).swapaxes(0, 1))
    f, scale = np.empty(p.shape if not only_last else (0,)), np.empty((p.shape[0], p.shape[1]))
    for i, now in enumerate(p):
        state = (state * now) @ switches
        scale[i] = state.sum(axis=1)
        state = state / np.where(scale[i] > 0, scale[i], 1.0)[:, None]
        if not only_last:
            f[i] = state
    with np.errstate(divide="ignore"):
        total = (np.log(scale) + top[..., 0].T).cumsum(axis=0)
        if only_last:
            return state, total[-1]
        return np.ascontiguousarray((np.log(f) + total[..., None]).swapaxes(0, 1)), total[-1]
