"""Reference predictors: distributions of the next token, in one pass over the batch.

Every predictor is `(tokens, task, ...) -> law`, of shape (batch, time, state). At
position i it is the distribution of token i + 1 given tokens 0 .. i. Where token i + 1
has no parent under any hypothesis, that is the initial distribution: the stationary
one, or the uniform one in a `FreshTask`. (In a task with lags these are the first
`max_lag` tokens.)

All predictors except `ngram` and `stationary_law` are a `mixture` over the hypotheses
and differ in the weights. The same call serves every task. `PREDICTORS` lists them: a
predictor added there is in `sih predict` and in the figure of predictors.

The selective estimator adds up probabilities instead of multiplying them. There a
transition of probability 0 is no evidence for its lag, but it does not rule the lag
out.
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
    r"""Return the prediction of Bayesian model averaging, the optimal one.

    The weights are $w_{i,h} \propto \mathbb{P}(h)\,\mathbb{P}(X_{\le i} \mid h)$.
    Paper: Sec. 4, "Task", the closed-form solution of the minimisation.

    Args:
        tokens: (batch, time), the sequences.
        task: the task they come from.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    r"""Return the prediction of the likeliest hypothesis alone.

    This is $k^* = \arg\max_k \mathbb{P}(X_{\le i} \mid k)$. Paper: Eq. (2).

    Ties go to the first hypothesis, the smallest lag. They are common early on, when
    two lags have made the same transitions in another order. Log-likelihoods that
    differ by no more than rounding (1e-12 of their size) count as equal.

    Args:
        tokens: (batch, time), the sequences.
        task: the task they come from.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    r"""Return the prediction of the paper's estimator (Prop. 1).

    It is $\sum_k w_{i,k} P_{s_{i-k+1},\,\cdot}$ with `selective_weights`.

    Args:
        tokens: (batch, time), the sequences.
        task: a task with known P and hypotheses.
        beta: the inverse temperature of the weights, `math.inf` for the limit.
        evidence: "mean" over the transitions seen, as in the paper, or their "sum".
        temper: the exponent γ of the probabilities before they are normalised, 1 in the
            paper.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    r"""Return the weights $w_{i,k} \propto \exp(\beta E_{i,k})$ of the hypotheses
    (paper, Prop. 1).

    $E_{i,k}$ is the mean of $\tilde p_{n,k}$ (`normalised_probabilities`, with the
    exponent `temper`) over the transitions seen, $\hat k < n \le i$. With
    `evidence="sum"` it is their sum. It is 0 before the first. `beta=math.inf` is the
    limit: all weight is on the largest evidence, shared among those equal to it up to
    rounding.

    Args:
        tokens: (batch, time), the sequences.
        task: a task with known P and hypotheses.
        beta: the inverse temperature of the weights, `math.inf` for the limit.
        evidence: "mean" over the transitions seen, as in the paper, or their "sum".
        temper: the exponent γ of the probabilities before they are normalised, 1 in the
            paper.

    Returns:
        The weights at each position, (batch, time, hypothesis).

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
    r"""Return $E_{i,k}$ of `selective_weights`, a sum or a mean."""
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
    r"""Return weights in proportion to $\exp(\beta E)$.

    With `beta=math.inf` the largest evidence has all the weight.
    """
    if math.isinf(beta):
        largest = leaders(evidence).to(evidence.dtype)
        return largest / largest.sum(dim=-1, keepdim=True)
    return torch.softmax(beta * evidence, dim=-1)


def known_lag(
    tokens: Tokens, lags: Int[Tensor, "batch *time"], task: MatrixTask
) -> Float[Tensor, "batch time state"]:
    r"""Return the prediction of each sequence's true lag, $P_{s_{i-k+1},\,\cdot}$.

    This is the true distribution of the next token.

    Args:
        tokens: (batch, time), the sequences.
        lags: (batch,) or (batch, time), the lags themselves, as in `Batch.lags`.
        task: the task they were drawn from.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    """Return the true distribution of the next token, given all hidden variables.

    These are the lag, or lags, and the matrix. In a `SwitchingTask` the lag of token
    i + 1 is known at position i. After the last token it has not been drawn yet, and
    the distribution averages over it.

    Args:
        batch: the sequences with their hidden variables, as `sih.sample` returns them.
        task: the task they were drawn from.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    r"""Return the stationary distribution $\pi$ at every position.

    In a `FreshTask` it is uniform. This is the best prediction before any token is
    seen.

    Args:
        tokens: (batch, time), the sequences.
        task: the task they come from.

    Returns:
        The same distribution at each position, (batch, time, state).

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
    r"""Return the prediction of BMA with P estimated by counting under each lag.

    The estimate is $\hat P_{ab} = (n_{ab} + c) / (n_a + |\mathcal{S}|\,c)$. Here c is
    the `pseudo_count`, and $n_{ab}$ are the transitions so far if this lag is right. It
    replaces P in the likelihood, of the same tokens that it was counted from, and in
    the distribution of the next token. Exact Bayes with unknown P has the same
    estimate, but weighs lags by their marginal likelihood. P itself is not used.

    Args:
        tokens: (batch, time), the sequences.
        task: a task with these lags and states.
        pseudo_count: c, imagined observations of each transition, above 0.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    r"""Return the lags' weights in `plug_in`,
    $\mathbb{P}(k) \prod_{ab} \hat P_{ab}^{n_{ab}}$.
    """
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
    r"""Return the prediction of a (max_lag + 1)-gram model, counted in the sequence.

    It is $(n_{i,s} + c\,\pi_s) / (\sum_{s'} n_{i,s'} + c)$. Here $n_{i,s}$ is how often
    state s followed the last max_lag tokens before, and c is the `pseudo_count`. In a
    new context this is the stationary distribution, whatever c. Neither P nor the lags
    are used, so it needs $O(|\mathcal{S}|^{\hat k + 1})$ tokens (paper, end of Sec. 4).

    Args:
        tokens: (batch, time), the sequences.
        task: the task that gives max_lag and the stationary distribution.
        pseudo_count: c, imagined observations, 0 or more.

    Returns:
        The distribution of token i + 1 at each position i, (batch, time, state).

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
    )  # nothing follows the last one yet
    # After a stable sort by context, equal contexts form runs in order of time. The history
    # of a context is the running sum from the start of its run.
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
    """Return a number for each run of `order` tokens, the same for equal runs.

    The numbers cannot overflow.
    """
    ids = torch.arange(tokens.shape[0], device=tokens.device)[:, None].expand_as(tokens)
    base = int(tokens.max()) + 1
    for back in range(order - 1, -1, -1):
        shifted = tokens[:, order - 1 - back : tokens.shape[1] - back]
        ids = ids[:, : shifted.shape[1]] * base + shifted
        ids = ids.unique(return_inverse=True)[1]
    return ids


@dataclass(frozen=True)
class Predictor:
    """A predictor with its label, and the weights that it gives to the lags."""

    label: str
    """Name in figures and on the page."""
    law: Callable[..., Tensor]
    """(tokens, task, **options) -> (batch, time, state)."""
    weights: Callable[..., Tensor] = lag_posterior
    """(tokens, task, **options) -> (batch, time, lag). `sih predict` infers the lag
    from them."""
    options: tuple[str, ...] = ()
    """Further arguments of both functions that a user may set."""
    yardstick: bool = False
    """Whether it is drawn beside every model."""


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
"""Predictors by their names in commands, in the order of figures."""
