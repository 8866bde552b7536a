"""Reference predictors: the law of the next token at every position, in one pass over the whole batch.

Every predictor is `(tokens, task, ...) -> law`, of shape (batch, time, state): at position i the law of token i + 1
given tokens 0 .. i. Where token i + 1 has no parent under any hypothesis (in a lag task, where it is still one of the
first `max_lag`) that is the initial law: the stationary one, or the uniform one in a `FreshTask`. All of them but
`ngram` and `stationary_law` are a `mixture` over the hypotheses and differ in the weights. The same call serves every
task. `PREDICTORS` lists them: a predictor added there is in `sih predict` and in the figure of predictors.

The selective estimator adds up probabilities instead of multiplying them, so there a transition of probability 0 is no
evidence for its lag, not a veto.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_choice, check_number, check_positive, described
from sih.base.types import Tokens
from sih.predictors.evidence import (
    check_states,
    lag_posterior,
    mixture,
    normalised_of,
    posterior_of,
)
from sih.task import (
    Batch,
    CausalTask,
    CountLaws,
    Lagged,
    MatrixTask,
    RowLaws,
    check_batch,
    check_task,
    has_parent,
    leaders,
    possible,
)

Evidence = Literal["mean", "sum"]


def bma(tokens: Tokens, task: CausalTask) -> Float[Tensor, "batch time state"]:
    r"""Predict by the Bayesian model average, $w_{i,h} \propto \mathbb{P}(h)\,\mathbb{P}(X_{\le i} \mid h)$. Optimal.

    Paper: Sec. 4, "Task", the closed-form solution of the minimisation. At position i it is the law of token i + 1.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.bma(tokens, task)[0]
    tensor([[0.6667, 0.3333],
            [0.6000, 0.4000],
            [0.4000, 0.6000],
            [0.7000, 0.3000]], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    laws = task.laws(tokens)
    return laws.mixture(posterior_of(laws, task))


def maximum_likelihood(tokens: Tokens, task: CausalTask) -> Float[Tensor, "batch time state"]:
    r"""Predict by the likeliest hypothesis alone, $k^* = \arg\max_k \mathbb{P}(X_{\le i} \mid k)$. Paper: Eq. (2).

    Ties go to the first, the smallest lag. They are common early on, when two lags have made the same transitions in
    another order, so log-likelihoods that differ by no more than rounding (1e-12 of their size) count as equal.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.maximum_likelihood(tokens, task)[0, -1]  # by lag 1 alone: the row of state 0
    tensor([0.8000, 0.2000], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    laws = task.laws(tokens)
    best = task.likeliest(laws.log_probabilities())
    return laws.mixture(torch.nn.functional.one_hot(best, len(task.hypotheses)).to(torch.float64))


def selective(
    tokens: Tokens,
    task: CausalTask,
    *,
    beta: float = 100.0,
    evidence: Evidence = "mean",
    temper: float = 1.0,
) -> Float[Tensor, "batch time state"]:
    r"""Predict by the paper's estimator (Prop. 1), $\sum_k w_{i,k} P_{s_{i-k+1},\,\cdot}$ with `selective_weights`.

    Args:
        tokens: the sequences, of shape (batch, time).
        task: whose P and hypotheses are known.
        beta: how sharply evidence is turned into weights, `math.inf` for the limit.
        evidence: "mean" over the transitions seen, as in the paper, or their "sum".
        temper: the exponent γ of the probabilities before they are normalised, 1 in the paper.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.selective(tokens, task, beta=10.0)[0, -1]
    tensor([0.7697, 0.2303], dtype=torch.float64)
    """
    return mixture(
        selective_weights(tokens, task, beta=beta, evidence=evidence, temper=temper), tokens, task
    )


def selective_weights(
    tokens: Tokens,
    task: CausalTask,
    *,
    beta: float = 100.0,
    evidence: Evidence = "mean",
    temper: float = 1.0,
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Weigh the hypotheses by $w_{i,k} \propto \exp(\beta E_{i,k})$, from normalised probabilities (paper, Prop. 1).

    $E_{i,k}$ is the mean of $\tilde p_{n,k}$ (`normalised_probabilities`, with the exponent `temper`) over the
    transitions seen, $\hat k < n \le i$, or with `evidence="sum"` its sum; 0 before the first. `beta=math.inf` is the
    limit: all weight on the largest evidence, shared among those equal to it up to rounding.

    Args:
        tokens: the sequences, of shape (batch, time).
        task: whose P and hypotheses are known.
        beta: how sharply evidence is turned into weights, `math.inf` for the limit.
        evidence: "mean" over the transitions seen, as in the paper, or their "sum".
        temper: the exponent γ of the probabilities before they are normalised, 1 in the paper.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.selective_weights(tokens, task, beta=10.0)[0, -1]
    tensor([0.9241, 0.0759], dtype=torch.float64)
    """
    check_number(
        "beta", beta, 0, wanted="an inverse temperature, 0 or more (math.inf for the limit)"
    )
    return weights_of(selective_evidence(tokens, task, evidence=evidence, temper=temper), beta)


def selective_evidence(
    tokens: Tokens, task: CausalTask, *, evidence: Evidence = "mean", temper: float = 1.0
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Add up or average the normalised probabilities seen so far: the $E_{i,k}$ of `selective_weights`."""
    tokens = check_states(tokens, task)
    check_positive("temper", temper, "a positive exponent, 1 in the paper")
    check_choice("evidence", evidence, ("mean", "sum"))
    laws = task.laws(tokens)
    log_p = laws.log_probabilities()
    if torch.isneginf(log_p).any():
        possible(task.log_likelihood(log_p))
    total = normalised_of(log_p, task, temper).cumsum(dim=1)
    if evidence == "sum":
        return total
    seen = has_parent(task.parents(tokens.shape[1])).cumsum(dim=0).to(tokens.device)
    return total / seen.clamp_min(1)[:, None]


def weights_of(
    evidence: Float[Tensor, "batch time hypothesis"], beta: float
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Weigh each hypothesis by $\exp(\beta E)$, or with `beta=math.inf` the largest alone."""
    if math.isinf(beta):
        largest = leaders(evidence).to(evidence.dtype)
        return largest / largest.sum(dim=-1, keepdim=True)
    return torch.softmax(beta * evidence, dim=-1)


def known_lag(
    tokens: Tokens, lags: Int[Tensor, "batch *time"], task: MatrixTask
) -> Float[Tensor, "batch time state"]:
    r"""Predict by each sequence's own lag, $P_{s_{i-k+1},\,\cdot}$: the true law of the next token.

    Args:
        tokens: the sequences.
        lags: the lag of each (its value), as in `Batch.lags`.
        task: what they were drawn from.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> sih.known_lag(torch.tensor([[0, 1, 1, 0]]), torch.tensor([2]), task)[0, -1]  # token 4 follows token 2, a 1
    tensor([0.4000, 0.6000], dtype=torch.float64)
    """
    check_task(task, MatrixTask)
    tokens = check_states(tokens, task)
    if not isinstance(lags, Tensor) or lags.shape[:1] != tokens.shape[:1]:
        raise FieldError(
            "lags",
            f"lags must be a tensor with one lag a sequence, as batch.lags; got {described(lags)}",
        )
    return truth(Batch(tokens, lags), task)


def truth(batch: Batch, task: CausalTask) -> Float[Tensor, "batch time state"]:
    """Give the true law of the next token, to one who knows all that was drawn: the lag, or lags, and the matrix.

    In a `SwitchingTask` the lag of token i + 1 is known at position i. After the last token it has not been drawn yet,
    and the law is over what it may be.

    Args:
        batch: the sequences, with all that was drawn, as `sih.sample` gives them.
        task: what they were drawn from.

    >>> import sih
    >>> task = sih.FreshTask(num_states=2, lags=(1, 2), length=8)
    >>> batch = sih.sample(task, size=3, rng=0)
    >>> bool((sih.truth(batch, task)[0, 7] == batch.P[0, batch.tokens[0, 8 - batch.lags[0]]]).all())
    True
    """
    check_batch(batch)
    tokens = check_states(batch.tokens, task)
    rows = task.transitions(batch).to(tokens.device)
    return RowLaws(tokens, task.parents, rows, task.initial).mixture(task.true_weights(batch))


def stationary_law(tokens: Tokens, task: CausalTask) -> Float[Tensor, "batch time state"]:
    r"""Predict the stationary law $\pi$ everywhere, in a `FreshTask` the uniform one: what is known before all tokens.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> sih.stationary_law(torch.tensor([[0, 1]]), task)[0]
    tensor([[0.6667, 0.3333],
            [0.6667, 0.3333]], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    return task.initial.to(tokens.device).repeat(*tokens.shape, 1)


def plug_in(
    tokens: Tokens, task: CausalTask, *, pseudo_count: float = 1.0
) -> Float[Tensor, "batch time state"]:
    r"""Estimate P by counting under each lag, and predict by BMA as if the estimates were the truth.

    $\hat P_{ab} = (n_{ab} + c) / (n_a + |\mathcal{S}|\,c)$ with c the `pseudo_count` and $n_{ab}$ the transitions that
    the lag says were made so far. It takes the place of P in the likelihood, of the same tokens that it was counted
    from, and in the law of the next token. Exact Bayes, where P is unknown, has the same estimate but weighs lags by
    their marginal likelihood. P itself is not used.

    Args:
        tokens: the sequences.
        task: whose lags and states they have.
        pseudo_count: c, imagined observations of each transition, above 0.

    >>> import sih
    >>> task = sih.FreshTask(num_states=2, lags=(1, 2), length=8)
    >>> sih.plug_in(torch.tensor([[0, 1, 0, 1, 0, 1]]), task)[0, -1]  # 0 always follows 1, and 1 follows 0
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    laws = _counted_laws(tokens, task, pseudo_count)
    return laws.mixture(_plug_in_weights(laws, task))


def plug_in_weights(
    tokens: Tokens, task: CausalTask, *, pseudo_count: float = 1.0
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Weigh the lags by $\mathbb{P}(k) \prod_{ab} \hat P_{ab}^{n_{ab}}$, as `plug_in` does."""
    return _plug_in_weights(_counted_laws(tokens, task, pseudo_count), task)


def _counted_laws(tokens: Tokens, task: CausalTask, pseudo_count: float) -> CountLaws:
    check_task(task, Lagged)
    assert isinstance(task, Lagged)
    check_positive(
        "pseudo_count",
        pseudo_count,
        "a positive number of imagined observations of each transition",
    )
    return CountLaws(check_states(tokens, task), task.lags, task.num_states, pseudo_count)


def _plug_in_weights(laws: CountLaws, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    return torch.softmax(
        laws.plug_in_gains().cumsum(dim=1) + task.prior.log().to(laws.tokens.device), dim=-1
    )


def ngram(
    tokens: Tokens, task: CausalTask, *, pseudo_count: float = 1.0
) -> Float[Tensor, "batch time state"]:
    r"""Count how often each state followed the last max_lag tokens, earlier in the sequence: a (max_lag + 1)-gram.

    $(n_{i,s} + c\,\pi_s) / (\sum_{s'} n_{i,s'} + c)$ with c the `pseudo_count`: the stationary law where the context
    is new, whatever c. Neither P nor the lags are used, which is why it needs
    $O(|\mathcal{S}|^{\hat k + 1})$ tokens (paper, end of Sec. 4).

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> sih.ngram(torch.tensor([[0, 1, 0, 0, 1, 0, 0, 1]]), task)[0, -1]  # after 0 1 there came 0, twice
    tensor([0.8889, 0.1111], dtype=torch.float64)
    """
    check_task(task, Lagged)
    assert isinstance(task, Lagged)
    check_number(
        "pseudo_count", pseudo_count, 0, wanted="a number of imagined observations, 0 or more"
    )
    if not (pseudo_count >= 0 and math.isfinite(pseudo_count)):
        raise FieldError(
            "pseudo_count",
            f"pseudo_count is a number of imagined observations, 0 or more; got {pseudo_count}",
        )
    tokens = check_states(tokens, task)
    law = stationary_law(tokens, task)
    size, time = tokens.shape
    first = task.max_lag - 1  # the first position with a whole context behind it
    if time <= first:
        return law
    context = _context_ids(tokens, task.max_lag).flatten()  # of positions first .. time - 1
    following = torch.zeros(
        (size, time - first, task.num_states), dtype=torch.float64, device=tokens.device
    )
    following[:, :-1].scatter_(
        -1, tokens[:, first + 1 :, None], 1.0
    )  # nothing has followed the last one yet
    # Sorted by context, earlier first, a context's history is the running sum from where its run of equals began.
    ids, order = torch.sort(context, stable=True)
    events = following.view(-1, task.num_states)[order]
    before = events.cumsum(dim=0) - events
    starts = torch.searchsorted(ids, ids)  # the run's first index
    counts = torch.empty_like(before)
    counts[order] = before - before[starts]
    counts = counts.view(size, time - first, task.num_states)
    total = counts.sum(dim=-1, keepdim=True) + pseudo_count
    seen = (counts + pseudo_count * law[:, first:]) / total
    law[:, first:] = torch.where(total > 0, seen, law[:, first:])
    return law


def _context_ids(tokens: Int[Tensor, "batch time"], order: int) -> Int[Tensor, "batch position"]:
    """Number the runs of `order` tokens, equal ones of the same sequence alike, without overflow."""
    ids = torch.arange(tokens.shape[0], device=tokens.device)[:, None].expand_as(tokens)
    base = int(tokens.max()) + 1
    for back in range(order - 1, -1, -1):
        shifted = tokens[:, order - 1 - back : tokens.shape[1] - back]
        ids = ids[:, : shifted.shape[1]] * base + shifted
        ids = ids.unique(return_inverse=True)[1]
    return ids


@dataclass(frozen=True)
class Predictor:
    """Names a predictor, and says how it weighs the lags."""

    label: str
    """In figures and on the page."""
    law: Callable[..., Tensor]
    """(tokens, task, **options) -> (batch, time, state)."""
    weights: Callable[..., Tensor] = lag_posterior
    """(tokens, task, **options) -> (batch, time, lag): by which `sih predict` infers the lag."""
    options: tuple[str, ...] = ()
    """Further arguments of both that a user may choose."""
    yardstick: bool = False
    """Drawn beside every model."""


PREDICTORS: dict[str, Predictor] = {
    "bma": Predictor("BMA", bma, yardstick=True),
    "selective-sum": Predictor(
        "selective, sum (β=3)",
        partial(selective, beta=3.0, evidence="sum"),
        partial(selective_weights, beta=3.0, evidence="sum"),
    ),
    "selective": Predictor(
        "selective, mean (β=100)",
        selective,
        selective_weights,
        options=("beta", "evidence", "temper"),
    ),
    "ml": Predictor("ML", maximum_likelihood, yardstick=True),
    "plug-in": Predictor("plug-in, P by counting", plug_in, plug_in_weights),
    "ngram": Predictor("n-gram in context", ngram),
    "stationary": Predictor("stationary distribution", stationary_law),
}
"""By the name in commands, in the order of figures."""
