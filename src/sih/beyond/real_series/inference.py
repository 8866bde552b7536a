r"""`sih.infer`: the lag that explains a series with an unknown transition matrix.

Under lag k token i has distribution $P_{s_{i-k},\,\cdot}$. The rows of P are unknown,
with Dirichlet priors of concentration $\alpha$. With $n_{ab}$ transitions from a to b
seen before it, and $n_a = \sum_b n_{ab}$, a token b whose parent is a has probability

$$\frac{n_{ab} + \alpha}{n_a + |\mathcal{S}|\,\alpha},$$

and the product of these is the evidence of the lag, its Dirichlet-multinomial marginal
likelihood. Two other models are evaluated by the same formula on the same tokens. In
*independent* all tokens have one parent. In *markov* the parent is the last max_lag
tokens together, a full chain of that order.

A series may have gaps, and come in several parts that share P. A token counts if it and
the max_lag tokens before it are present, so that all lags and models compete on the
same tokens. Missing tokens are not imputed: their information is lost, and a token that
counts is predicted from the earlier ones that count.
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

from sih.base.errors import (
    FieldError,
    check_fields,
    check_number,
    check_sizes,
    described,
    generator,
)
from sih.base.showing import Drawn, Shown
from sih.base.types import Seed
from sih.task import check_lags
from sih.task.lags import check_prior
from sih.task.matrices import check_dirichlet

LEVEL = 0.95
"""Posterior probability of an interval."""
TIE = 3.0
"""Lags tie if their posteriors differ by a factor of at most exp(`TIE`), about 20:
three nats."""
Series = Tensor | np.ndarray | Sequence[Any]


@dataclass(frozen=True, eq=False)
class PermutationTest(Shown):
    """Result of a permutation test: under the null hypothesis, order has no information.

    Under the null each shuffled series is as likely as the observed one. So `p_value`
    is at most x with probability at most x, exactly, whatever the distribution of the
    tokens: "reject at 0.05" errs in at most one null series of 20. A p-value is not the
    probability that the null hypothesis is true.
    """

    statistic: float
    """The evidence of the best lag, minus that of independent tokens, in nats."""
    shuffled: Float[Tensor, " permutation"]
    """The same of each shuffled series."""
    p_value: float

    @property
    def verdict(self) -> str:
        """Return the p-value in a phrase, with the number of shuffles and the null
        hypothesis.
        """
        shuffles = f"{len(self.shuffled)} shuffle{'s' * (len(self.shuffled) != 1)}"
        return f"permutation test: p = {self.p_value:.4g} ({shuffles}; null: order carries no information)"


@dataclass(frozen=True, eq=False)
class Inference(Drawn):
    r"""The evidence of a series about its lag, its transition matrix and other models.

    >>> import sih
    >>> found = sih.infer([0, 1] * 20, lags=(1, 2))  # both lags predict it
    >>> print(found.verdict.replace(" (", "\n("))
    lags 1 and 2 explain it alike, with posteriors 0.500 and 0.500
    (22.0 nats over independence, level with a chain of order 2)
    >>> found.tied
    (1, 2)
    """

    drawing = "sih.beyond.real_series.inference_figure:draw_inference"

    lags: tuple[int, ...]
    num_states: int
    concentration: float
    counted: int
    """Number of tokens that count: those with all of the max_lag tokens before them."""
    log_evidence: Float[Tensor, " lag"]
    """The logarithm of each lag's marginal likelihood."""
    posterior: Float[Tensor, " lag"]
    along: Float[Tensor, "time lag"]
    """The posterior after each token, for all parts one after the other."""
    P: Float[Tensor, "state state"]
    """Posterior mean of the transition matrix, under the best lag."""
    interval: Float[Tensor, "state state 2"]
    """The central `LEVEL` of each entry's posterior: its lower and upper end."""
    transitions: Int[Tensor, "state state"]
    """Numbers of transitions under the best lag, from each state to each."""
    bayes_factors: dict[str, float]
    """Nats by which the best lag is likelier than "independent" tokens, and than a full
    "markov" chain."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def lag(self) -> int | None:
        """Return the lag with the largest posterior, the first of equal ones, or None
        if no token counts.
        """
        return self.lags[int(self.posterior.argmax())] if self.counted else None

    @property
    def tied(self) -> tuple[int, ...]:
        """Return the best lag and all within `TIE` nats of it.

        It is empty if one lag is clearly best or no token counts.
        """
        if not self.counted:
            return ()
        enough = self.posterior.max() * math.exp(-TIE)
        close = [lag for lag, p in zip(self.lags, self.posterior, strict=True) if p >= enough]
        return tuple(close) if len(close) > 1 else ()

    @property
    def verdict(self) -> str:
        """Return a phrase on the best explanation: a lag, several tied ones,
        independence or the full chain.
        """
        if not self.counted:
            return "no token counts: the series says nothing of its lag"
        independent, markov = self.bayes_factors["independent"], self.bayes_factors["markov"]
        names = _listed_lags(self.tied or (self.lags[int(self.posterior.argmax())],))
        if independent < -TIE and independent <= markov:
            return f"no lag: independent tokens explain the series better than {names} ({-independent:.1f} nats)"
        if markov < -TIE:
            return f"no single lag: a full chain of order {self.lags[-1]} beats {names} ({-markov:.1f} nats)"
        if independent <= TIE:
            return f"no lag stands out: independent tokens explain the series as well as {names} (within {TIE:g} nats)"
        return f"{self._weighed(names)} ({independent:.1f} nats over independence{self._over_chain(markov)})"

    def _weighed(self, names: str) -> str:
        """Return the best lags with their posteriors, which mean nothing for a single
        candidate.
        """
        if len(self.lags) == 1:
            return names
        if not self.tied:
            return f"{names}, with posterior {self.posterior.max():.3f} among the lags"
        weights = [f"{self.posterior[self.lags.index(lag)]:.3f}" for lag in self.tied]
        return f"{names} explain it alike, with posteriors {_listed(weights)}"

    def _over_chain(self, markov: float) -> str:
        if self.lags == (1,):
            return ""  # the full chain is the lag itself
        chain = f"a chain of order {self.lags[-1]}"
        return f", level with {chain}" if abs(markov) <= TIE else f", {markov:.1f} over {chain}"

    def plot(self, symbols: Sequence[str] = ()) -> Any:
        """Draw the posterior along the series, and P under the best lag with its
        intervals, as a matplotlib figure.

        >>> import sih
        >>> len(sih.infer([0, 1, 1, 0, 1, 0, 0, 1], lags=(1, 2)).plot(symbols=("a", "b")).axes)
        2
        """
        return self._draw(symbols=tuple(symbols))

    def _facts(self) -> dict[str, Any]:
        best: dict[str, Any] = {"lag": self.lag, **({"tied": self.tied} if self.tied else {})}
        if self.counted and len(self.lags) > 1:
            best["posterior"] = self.posterior.max().item()
        return {**best, **self.bayes_factors, "counted": self.counted}


def _listed_lags(lags: Sequence[int]) -> str:
    """Return lags in words: "lag 2", "lags 1, 2 and 5"."""
    return f"lag{'s' * (len(lags) > 1)} {_listed([str(lag) for lag in lags])}"


def _listed(words: Sequence[str]) -> str:
    """Return words in a row, "and" before the last of several."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def infer(
    tokens: Series,
    lags: Sequence[int],
    *,
    num_states: int | None = None,
    concentration: float = 1.0,
    lag_prior: Sequence[float] | Tensor | None = None,
) -> Inference:
    r"""Return the inferred lag of a series and its transition matrix, if neither is
    known.

    Args:
        tokens: A series of states 0, 1, ... with -1 for a missing one, or several
            series: a tensor with one per row, or a list of series of any lengths. All
            share one matrix and one lag.
        lags: The lags to compare, increasing.
        num_states: Number of states. Default: one more than the largest token.
        concentration: $\alpha$ of the Dirichlet rows, the same for every model.
        lag_prior: The probability of each lag. Default: uniform.

    Returns:
        The posterior of the lags (lag,), the transition matrix (state, state), and
            Bayes factors.

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
    ends = [_beta_quantile(mine, total - mine, q) for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    rivals = {"independent": torch.zeros_like(child), "markov": _contexts(window, num_states)}
    factors = {
        name: float(
            log_evidence[best] - _log_predictive(parent, child, num_states, concentration).sum()
        )
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
    """Return a permutation test of whether the order of the tokens matters, by the
    evidence of the best lag.

    The present tokens change places within each part; gaps stay in place.

    Args:
        tokens: As in `infer`.
        lags: As in `infer`.
        rng: A seed or a torch.Generator.
        permutations: Number of shuffled series; the p-value is at least 1 /
            (permutations + 1).
        num_states: As in `infer`.
        concentration: As in `infer`.

    Returns:
        The p-value, with the statistic of the series and of each shuffled one.

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
        return (
            max(
                _log_marginal(series[places - lag], child, num_states, concentration)
                for lag in lags
            )
            - one
        )

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


def _beta_quantile(
    a: Float[Tensor, "*shape"], b: Float[Tensor, "*shape"], q: float
) -> Float[Tensor, "*shape"]:
    r"""Return the x with $\mathbb{P}(X \le x) = q$ for $X \sim \mathrm{Beta}(a, b)$."""
    from scipy.special import betaincinv  # takes a while to load

    return torch.from_numpy(np.asarray(betaincinv(a.numpy(), b.numpy(), q)))


def _log_predictive(
    parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int, concentration: float
) -> Float[Tensor, " n"]:
    """Return each token's log probability, from the transitions from its parent that
    came before it.
    """
    pair = parent * num_states + child
    made, total = _earlier(pair).double(), _earlier(parent).double()
    return (made + concentration).log() - (total + num_states * concentration).log()


def _earlier(key: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Return at every place the number of earlier occurrences of its key."""
    ids, order = torch.sort(key, stable=True)
    rank = torch.arange(len(key)) - torch.searchsorted(ids, ids)
    return torch.empty_like(order).scatter_(0, order, rank)


def _log_marginal(
    parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int, concentration: float
) -> float:
    """Return the sum of `_log_predictive`, from the final counts alone."""
    counts = _pairs(parent, child, num_states).double()
    total = counts.sum(dim=1)
    every = num_states * concentration
    cells = (counts + concentration).lgamma().sum() - counts.numel() * math.lgamma(concentration)
    return float(cells - (total + every).lgamma().sum() + len(total) * math.lgamma(every))


def _contexts(window: Int[Tensor, "n max_lag"], num_states: int) -> Int[Tensor, " n"]:
    """Return a number for each stretch of tokens, the same for equal ones."""
    ids = torch.zeros(len(window), dtype=torch.int64)
    for column in window.unbind(dim=1):
        ids = (ids * num_states + column).unique(return_inverse=True)[1]
    return ids


def _pairs(
    parent: Int[Tensor, " n"], child: Int[Tensor, " n"], num_states: int
) -> Int[Tensor, "state state"]:
    return torch.bincount(parent * num_states + child, minlength=num_states**2).view(
        num_states, num_states
    )


def _counted(
    parts: list[Int[Tensor, " _"]], max_lag: int
) -> tuple[Int[Tensor, " n"], Int[Tensor, "n max_lag"]]:
    """Return the tokens that count, by their places in all parts together, with the
    max_lag tokens before each.
    """
    places, windows = (
        [torch.empty(0, dtype=torch.int64)],
        [torch.empty((0, max_lag), dtype=torch.int64)],
    )
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
    """Return a series as a tensor; raise a TypeError if it contains True or False."""
    if isinstance(part, Sequence) and any(isinstance(token, bool) for token in part):
        raise TypeError("a state is a whole number")
    return torch.as_tensor(part)


def _check_series(tokens: Series, num_states: int | None) -> tuple[list[Int[Tensor, " _"]], int]:
    """Return the parts of a series as int64, and the number of states; raise a
    FieldError if they are invalid.
    """
    wanted = "a series of states 0, 1, ... with -1 for a missing one, or a list of such series, e.g. [0, 1, 1, 0]"
    try:
        whole_rows = (
            isinstance(tokens, Tensor | np.ndarray) or not len(tokens) or np.isscalar(tokens[0])
        )
        given = [_as_tensor(tokens)] if whole_rows else [_as_tensor(part) for part in tokens]
    except (TypeError, ValueError, RuntimeError, IndexError, KeyError):
        raise FieldError("tokens", f"tokens is {wanted}; got {described(tokens)}") from None
    given = [row for part in given for row in (part if part.ndim == 2 and whole_rows else [part])]
    for part in given:
        if (
            part.ndim != 1
            or (len(part) and part.is_floating_point())
            or part.dtype == torch.bool
            or part.is_complex()
        ):
            raise FieldError("tokens", f"tokens is {wanted}; got {described(part)}")
    parts = [part.long().cpu() for part in given]
    whole = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)
    if not len(whole) or int(whole.max()) < 0:
        raise FieldError("tokens", f"tokens is {wanted}; got none that is there")
    if int(whole.min()) < -1:
        raise FieldError(
            "tokens", f"a token is a state, or -1 for a missing one; got {int(whole.min())}"
        )
    found = max(2, int(whole.max()) + 1)
    if num_states is not None:
        check_number("num_states", num_states, 2, wanted="a number of states, 2 or more")
        if int(num_states) != num_states or num_states < found:
            raise FieldError(
                "num_states", f"num_states is at least {found}, for these tokens; got {num_states}"
            )
    return parts, int(num_states or found)
