r"""Which lag explains a series whose transition matrix is unknown: `sih.infer`.

Under lag k token i has law $P_{s_{i-k},\,\cdot}$, and the rows of P are unknown, with Dirichlet laws of concentration
$\alpha$. With $n_{ab}$ transitions from a to b seen before it, and $n_a = \sum_b n_{ab}$, a token b whose parent is a
has probability

$$\frac{n_{ab} + \alpha}{n_a + |\mathcal{S}|\,\alpha},$$

and the product of these is the evidence of the lag, its Dirichlet-multinomial marginal likelihood. Two other models are
judged by the same formula on the same tokens: *independent*, where all tokens have one parent, and *markov*, where the
parent is everything seen in the last max_lag tokens, a full chain of that order.

A series may have gaps, and come in several parts that share P. A token counts if it and the max_lag tokens before it
are there, so that all lags and models compete on the same tokens. Where a token is missing nothing is imagined in its
place: what the gap could say is given up, and a counted token is judged by what was counted before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.checks import FieldError, Seed, check_fields, check_number, check_sizes, described, generator, plot
from sih.markov import check_dirichlet
from sih.showing import Shown
from sih.stats import beta_quantile
from sih.task import check_lags
from sih.task.lags import check_prior

LEVEL = 0.95
"""How much of the posterior an interval holds."""
Series = Tensor | np.ndarray | Sequence[Any]


@dataclass(frozen=True, eq=False)
class PermutationTest(Shown):
    """Holds what a permutation test of independence found.

    If the order of the tokens means nothing, each of the shuffled series is as likely as the one that was seen. So
    `p_value` is at most x with probability at most x, exactly, whatever the law of the tokens: "reject at 0.05" is
    wrong in at most one series of twenty that have no structure.
    """

    statistic: float
    """The evidence of the best lag, less that of independent tokens, in nats."""
    shuffled: Float[Tensor, " permutation"]
    """The same of each shuffled series."""
    p_value: float

    @property
    def verdict(self) -> str:
        """Say in a sentence what was found, and how often it would be wrong."""
        rate = "where order means nothing, p is at most x in a share x of all series"
        return f"p = {self.p_value:.4g} that order means nothing, by {len(self.shuffled)} shuffled series ({rate})"


@dataclass(frozen=True, eq=False)
class Inference(Shown):
    """Holds what a series says of its lag, its transition matrix, and of other models.

    >>> import sih
    >>> found = sih.infer([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], lags=(1, 2))
    >>> found.verdict
    'lag 2, with posterior 0.643 among the lags (0.5 nats over independence, 0.1 over a chain of order 2)'
    """

    lags: tuple[int, ...]
    num_states: int
    concentration: float
    counted: int
    """Tokens that count: with all of the max_lag tokens before them."""
    log_evidence: Float[Tensor, " lag"]
    """The logarithm of each lag's marginal likelihood."""
    posterior: Float[Tensor, " lag"]
    along: Float[Tensor, "time lag"]
    """The posterior after each token, of all parts one after the other."""
    P: Float[Tensor, "state state"]
    """The mean of the transition matrix's posterior, under the best lag."""
    interval: Float[Tensor, "state state 2"]
    """The middle `LEVEL` of each entry's posterior, its lower and upper end."""
    transitions: Int[Tensor, "state state"]
    """How many transitions there were under the best lag, from each state to each."""
    bayes_factors: dict[str, float]
    """By how many nats the best lag is likelier than "independent" tokens, and than a full "markov" chain."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def lag(self) -> int:
        """Return the best lag, the one with the largest posterior."""
        return self.lags[int(self.posterior.argmax())]

    @property
    def verdict(self) -> str:
        """Say in a sentence what explains the series best, of the lags, independence and the full chain."""
        independent, markov = self.bayes_factors["independent"], self.bayes_factors["markov"]
        weight = f"lag {self.lag}, with posterior {self.posterior.max():.3f} among the lags"
        if not self.counted:
            return "no token counts: the series says nothing"
        if independent <= 0 and independent <= markov:
            return f"no lag: independent tokens explain the series better than {weight} ({-independent:.1f} nats)"
        if markov < 0:
            return f"no single lag: a full chain of order {self.lags[-1]} beats {weight} ({-markov:.1f} nats)"
        against = f"{independent:.1f} nats over independence, {markov:.1f} over a chain of order {self.lags[-1]}"
        return f"{weight} ({against})"

    def plot(self, symbols: Sequence[str] = ()) -> Any:
        """Draw the posterior along the series, and P under the best lag with its intervals, as a matplotlib figure.

        >>> import sih
        >>> len(sih.infer([0, 1, 1, 0, 1, 0, 0, 1], lags=(1, 2)).plot(symbols=("a", "b")).axes)
        2
        """
        return plot(self, symbols=tuple(symbols))

    def _facts(self) -> dict[str, Any]:
        best = {"lag": self.lag, "posterior": self.posterior.max().item()}
        return {**best, **self.bayes_factors, "counted": self.counted}


def infer(
    tokens: Series,
    lags: Sequence[int],
    *,
    num_states: int | None = None,
    concentration: float = 1.0,
    lag_prior: Sequence[float] | Tensor | None = None,
) -> Inference:
    r"""Infer the lag of a series, and its transition matrix, when neither is known.

    Args:
        tokens: a series of states 0, 1, ... with -1 where one is missing, or several: a tensor with a series in each
            row, or a list of series that may differ in length. All share one matrix and one lag.
        lags: the lags that are compared, increasing.
        num_states: how many states there are, one more than the largest token unless given.
        concentration: $\alpha$ of the Dirichlet rows, the same for every model.
        lag_prior: the probability of each lag, the same for all unless given.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.3, 0.7]], lags=(1, 2, 3), length=400)
    >>> found = sih.infer(sih.sample(task, size=1, rng=0, lag=2).tokens[0], lags=(1, 2, 3))
    >>> found.lag, bool(found.posterior.max() > 0.99)
    (2, True)
    """
    lags = check_lags(lags)
    parts, num_states = _check_series(tokens, num_states)
    check_dirichlet(num_states, concentration)
    prior = check_prior(lag_prior, len(lags))
    places, window = _counted(parts, lags[-1])
    child = torch.cat(parts)[places]
    predictive = torch.stack(
        [_log_predictive(window[:, -lag], child, num_states, concentration) for lag in lags], dim=1
    )
    joint = torch.zeros((sum(map(len, parts)), len(lags)), dtype=torch.float64)
    joint[places] = predictive
    log_evidence = predictive.sum(dim=0)
    posterior = torch.softmax(log_evidence + prior.log(), dim=0)
    best = int(posterior.argmax())
    transitions = _pairs(window[:, -lags[best]], child, num_states)
    total = transitions.sum(dim=1, keepdim=True).double() + num_states * concentration
    mine = transitions.double() + concentration
    ends = [beta_quantile(mine, total - mine, q) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    rivals = {"independent": torch.zeros_like(child), "markov": _contexts(window, num_states)}
    factors = {
        name: float(log_evidence[best] - _log_predictive(parent, child, num_states, concentration).sum())
        for name, parent in rivals.items()
    }
    along = torch.softmax(joint.cumsum(dim=0) + prior.log(), dim=1)
    return Inference(
        lags, num_states, concentration, len(child), log_evidence, posterior, along,
        mine / total, torch.stack(ends, dim=-1), transitions, factors,
    )  # fmt: skip


def permutation_test(
    tokens: Series,
    lags: Sequence[int],
    *,
    rng: Seed,
    permutations: int = 199,
    num_states: int | None = None,
    concentration: float = 1.0,
) -> PermutationTest:
    """Test whether the order of the tokens means anything, by how well the best lag explains the series and shuffles.

    The tokens that are there change places within each part; gaps stay where they are.

    Args:
        tokens: as in `infer`.
        lags: as in `infer`.
        rng: a seed or a torch.Generator.
        permutations: how many shuffled series; the p-value is at least 1 / (permutations + 1).
        num_states: as in `infer`.
        concentration: as in `infer`.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.3, 0.7]], lags=(1, 2, 3), length=200)
    >>> series = sih.sample(task, size=1, rng=0, lag=2).tokens[0]
    >>> sih.permutation_test(series, (1, 2, 3), rng=0, permutations=19).p_value
    0.05
    """
    lags = check_lags(lags)
    parts, num_states = _check_series(tokens, num_states)
    check_dirichlet(num_states, concentration)
    check_sizes(permutations=permutations)
    rng = generator(rng)
    places, _ = _counted(parts, lags[-1])
    whole, bounds = torch.cat(parts), _bounds(parts)

    def statistic(series: Int[Tensor, " time"]) -> float:
        child = series[places]
        one = _log_marginal(torch.zeros_like(child), child, num_states, concentration)
        return max(_log_marginal(series[places - lag], child, num_states, concentration) for lag in lags) - one

    def shuffled() -> Int[Tensor, " time"]:
        series = whole.clone()
        for first, last in bounds:
            there = first + (whole[first:last] >= 0).nonzero().flatten()
            series[there] = whole[there[torch.randperm(len(there), generator=rng)]]
        return series

    seen = statistic(whole)
    others = torch.tensor([statistic(shuffled()) for _ in range(permutations)], dtype=torch.float64)
    as_good = int((others >= seen - 1e-9 * max(1.0, abs(seen))).sum())
    return PermutationTest(seen, others, (1 + as_good) / (1 + permutations))


def _log_predictive(
    parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int, concentration: float
) -> Float[Tensor, " n"]:
    """Give each token's probability, as a logarithm, by the transitions from its parent that came before it."""
    pair = parent * num_states + child
    made, total = _earlier(pair).double(), _earlier(parent).double()
    return (made + concentration).log() - (total + num_states * concentration).log()


def _earlier(key: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Count, at every place, how often the key there came before."""
    ids, order = torch.sort(key, stable=True)
    rank = torch.arange(len(key)) - torch.searchsorted(ids, ids)
    return torch.empty_like(order).scatter_(0, order, rank)


def _log_marginal(parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int, concentration: float) -> float:
    """Give the sum of `_log_predictive`, from the counts at the end alone."""
    counts = _pairs(parent, child, num_states).double()
    total = counts.sum(dim=1)
    every = num_states * concentration
    cells = (counts + concentration).lgamma().sum() - counts.numel() * math.lgamma(concentration)
    return float(cells - (total + every).lgamma().sum() + len(total) * math.lgamma(every))


def _contexts(window: Int[Tensor, "n max_lag"], num_states: int) -> Int[Tensor, " n"]:
    """Number the stretches of tokens, equal ones alike."""
    ids = torch.zeros(len(window), dtype=torch.int64)
    for column in window.unbind(dim=1):
        ids = (ids * num_states + column).unique(return_inverse=True)[1]
    return ids


def _pairs(parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int) -> Int[Tensor, "state state"]:
    return torch.bincount(parent * num_states + child, minlength=num_states**2).view(num_states, num_states)


def _counted(parts: list[Int[Tensor, " _"]], max_lag: int) -> tuple[Int[Tensor, " n"], Int[Tensor, "n max_lag"]]:
    """Find the tokens that count, by their places in all parts together, and the max_lag tokens before each."""
    places, windows = [torch.empty(0, dtype=torch.int64)], [torch.empty((0, max_lag), dtype=torch.int64)]
    for (first, last), part in zip(_bounds(parts), parts, strict=True):
        if last - first > max_lag:
            stretches = part.unfold(0, max_lag + 1, 1)
            whole = (stretches >= 0).all(dim=1).nonzero().flatten()
            places.append(first + max_lag + whole)
            windows.append(stretches[whole, :-1])
    return torch.cat(places), torch.cat(windows)


def _bounds(parts: list[Int[Tensor, " _"]]) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *map(len, parts)]).tolist()
    return list(itertools.pairwise(ends))


def _as_tensor(part: Series) -> Tensor:
    """Give a series as a tensor, or raise a TypeError for one in which True or False stands among the numbers."""
    if isinstance(part, Sequence) and any(isinstance(token, bool) for token in part):
        raise TypeError("a state is a whole number")
    return torch.as_tensor(part)


def _check_series(tokens: Series, num_states: int | None) -> tuple[list[Int[Tensor, " _"]], int]:
    """Give the parts of a series as int64, and how many states there are, or raise a FieldError."""
    wanted = "a series of states 0, 1, ... with -1 for a missing one, or a list of such series, e.g. [0, 1, 1, 0]"
    try:
        whole_rows = isinstance(tokens, Tensor | np.ndarray) or not len(tokens) or np.isscalar(tokens[0])
        given = [_as_tensor(tokens)] if whole_rows else [_as_tensor(part) for part in tokens]
    except (TypeError, ValueError, RuntimeError, IndexError, KeyError):
        raise FieldError("tokens", f"tokens is {wanted}; got {described(tokens)}") from None
    given = [row for part in given for row in (part if part.ndim == 2 and whole_rows else [part])]
    for part in given:
        if part.ndim != 1 or (len(part) and part.is_floating_point()) or part.dtype == torch.bool or part.is_complex():
            raise FieldError("tokens", f"tokens is {wanted}; got {described(part)}")
    parts = [part.long().cpu() for part in given]
    whole = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)
    if not len(whole) or int(whole.max()) < 0:
        raise FieldError("tokens", f"tokens is {wanted}; got none that is there")
    if int(whole.min()) < -1:
        raise FieldError("tokens", f"a token is a state, or -1 for a missing one; got {int(whole.min())}")
    found = max(2, int(whole.max()) + 1)
    if num_states is not None:
        check_number("num_states", num_states, 2, wanted="a number of states, 2 or more")
        if int(num_states) != num_states or num_states < found:
            raise FieldError("num_states", f"num_states is at least {found}, for these tokens; got {num_states}")
    return parts, int(num_states or found)
