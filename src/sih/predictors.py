"""Reference predictors: the law of the next token at every position, in one pass over the whole batch.

Every predictor is `(tokens, task, ...) -> law`, of shape (batch, time, state): at position i the law of token i + 1
given tokens 0 .. i. Where token i + 1 is still one of the first `max_lag`, that is the stationary law. All of them
but `ngram` and `stationary_law` are a mixture $\\sum_k w_{i,k} P_{s_{i-k+1},\\,\\cdot}$ over lags and differ in the
weights, which have functions of their own. Arithmetic is float64, likelihoods are kept as logarithms.

A probability of 0 is allowed. A lag under which the sequence seen so far is impossible has likelihood 0 and weight
0; a sequence impossible under every lag is an error. The selective estimator adds up probabilities instead of
multiplying them, so there a transition of probability 0 is no evidence for its lag, not a veto.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.task import Task

Evidence = Literal["mean", "sum"]


def bma(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time state"]:
    r"""Bayesian model average: $w_{i,k} \propto \mathbb{P}(k)\,\mathbb{P}(X_{\le i} \mid k)$. Optimal.

    Paper: Sec. 4, "Task", the closed-form solution of the minimisation.
    """
    return mixture(lag_posterior(tokens, task), tokens, task)


def maximum_likelihood(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time state"]:
    r"""All weight on $k^* = \arg\max_k \mathbb{P}(X_{\le i} \mid k)$. Paper: Eq. (2).

    Ties go to the smallest lag. They are common early on, when two lags have made the same transitions in another
    order, so log-likelihoods that differ by no more than rounding (1e-12 of their size) count as equal.
    """
    best = _leaders(lag_log_likelihood(tokens, task)).int().argmax(dim=-1)  # the first of equals
    return mixture(torch.nn.functional.one_hot(best, len(task.lags)).to(torch.float64), tokens, task)


def selective(
    tokens: Int[Tensor, "batch time"],
    task: Task,
    *,
    beta: float = 100.0,
    evidence: Evidence = "mean",
    temper: float = 1.0,
) -> Float[Tensor, "batch time state"]:
    """The paper's estimator (Prop. 1), with the weights of `selective_weights`."""
    return mixture(selective_weights(tokens, task, beta=beta, evidence=evidence, temper=temper), tokens, task)


def known_lag(
    tokens: Int[Tensor, "batch time"], lags: Int[Tensor, " batch"], task: Task
) -> Float[Tensor, "batch time state"]:
    """The truth: each sequence's own lag (its value) is told."""
    is_lag = lags[:, None] == torch.tensor(task.lags, device=lags.device)
    if not is_lag.any(dim=-1).all():
        wrong = int((~is_lag.any(dim=-1)).nonzero()[0])
        raise ValueError(f"the lag of sequence {wrong} is {int(lags[wrong])}, but the task's lags are {task.lags}")
    weights = is_lag.to(torch.float64)[:, None, :].expand(-1, tokens.shape[1], -1)
    return mixture(weights, tokens, task)


def stationary_law(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time state"]:
    """The stationary law everywhere: what is known before anything is seen."""
    tokens = _check_tokens(tokens, task)
    return task.stationary.to(tokens.device).repeat(*tokens.shape, 1)


def ngram(
    tokens: Int[Tensor, "batch time"], task: Task, *, pseudo_count: float = 1.0
) -> Float[Tensor, "batch time state"]:
    r"""In-context (max_lag + 1)-gram: how often each state followed the last max_lag tokens, earlier in the sequence.

    $(n_{i,s} + c\,\pi_s) / (\sum_{s'} n_{i,s'} + c)$ with c the `pseudo_count`: the stationary law where the context
    is new, whatever c. Neither P nor the lags are used, which is why it needs
    $O(|\mathcal{S}|^{\hat k + 1})$ tokens (paper, end of Sec. 4).
    """
    if not (pseudo_count >= 0 and math.isfinite(pseudo_count)):
        raise ValueError(f"pseudo_count is a number of imagined observations, 0 or more; got {pseudo_count}")
    tokens = _check_tokens(tokens, task)
    law = stationary_law(tokens, task)
    size, time = tokens.shape
    first = task.max_lag - 1  # the first position with a whole context behind it
    if time <= first:
        return law
    context = _context_ids(tokens, task.max_lag).flatten()  # of positions first .. time - 1
    following = torch.zeros((size, time - first, task.num_states), dtype=torch.float64, device=tokens.device)
    following[:, :-1].scatter_(-1, tokens[:, first + 1 :, None], 1.0)  # nothing has followed the last one yet
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


def lag_posterior(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time lag"]:
    r"""$\mathbb{P}(k \mid X_{\le i})$ at every position: the weights of `bma`."""
    log_joint = lag_log_likelihood(tokens, task) + task.lag_prior.log().to(tokens.device)
    return torch.softmax(log_joint, dim=-1)


def selective_weights(
    tokens: Int[Tensor, "batch time"],
    task: Task,
    *,
    beta: float = 100.0,
    evidence: Evidence = "mean",
    temper: float = 1.0,
) -> Float[Tensor, "batch time lag"]:
    r"""$w_{i,k} \propto \exp(\beta E_{i,k})$ from normalised probabilities (paper, Prop. 1).

    $\tilde p_{n,k} = p_{n,k}^\gamma / \sum_l p_{n,l}^\gamma$ with $\gamma$ = `temper`, 1 in the paper. $E_{i,k}$ is its
    mean over the transitions seen, $\hat k < n \le i$, or with `evidence="sum"` its sum; 0 before the first.
    `beta=math.inf` is the limit: all weight on the largest evidence, shared among those equal to it up to rounding.
    """
    if not beta >= 0:
        raise ValueError(f"beta is an inverse temperature, 0 or more (math.inf for the limit); got {beta}")
    if not (temper > 0 and math.isfinite(temper)):
        raise ValueError(f"temper is a positive exponent, 1 in the paper; got {temper}")
    if evidence not in ("mean", "sum"):
        raise ValueError(f"evidence is 'mean' (the paper's) or 'sum'; got {evidence!r}")
    log_p = _log_transitions(tokens, task)
    if not (task.P > 0).all():
        _check_possible(log_p.cumsum(dim=1))
    seen = torch.arange(1 - task.max_lag, tokens.shape[1] - task.max_lag + 1, device=tokens.device)
    normalised = torch.softmax(temper * log_p, dim=-1) * (seen > 0)[:, None]
    total = normalised.cumsum(dim=1)
    if evidence == "mean":
        total = total / seen.clamp_min(1)[:, None]
    if math.isinf(beta):
        largest = _leaders(total).to(total.dtype)
        return largest / largest.sum(dim=-1, keepdim=True)
    return torch.softmax(beta * total, dim=-1)


def lag_log_likelihood(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time lag"]:
    r"""$\ell_{i,k} = \sum_{n=\hat k+1}^{i} \log P_{s_{n-k},\,s_n}$ at every position i; 0 before the first transition.

    Paper: Sec. 4, "Data". The factor $\prod_{i \le \hat k} \pi(s_i)$ common to all lags is left out, so all lags
    compete on the same tokens, those after the first max_lag.
    """
    log_likelihood = _log_transitions(tokens, task).cumsum(dim=1)
    _check_possible(log_likelihood)
    return log_likelihood


def mixture(
    weights: Float[Tensor, "batch time lag"], tokens: Int[Tensor, "batch time"], task: Task
) -> Float[Tensor, "batch time state"]:
    r"""$\sum_k w_{i,k} P_{s_{i-k+1},\,\cdot}$: the token that each lag would copy, weighed."""
    tokens = _check_tokens(tokens, task)
    law = stationary_law(tokens, task)
    P = task.P.to(tokens.device)
    first = task.max_lag - 1
    if tokens.shape[1] > first:
        law[:, first:] = 0.0
        for j, lag in enumerate(task.lags):
            parents = tokens[:, first + 1 - lag : tokens.shape[1] + 1 - lag]
            law[:, first:].addcmul_(weights[:, first:, j, None], P[parents])
    return law


def _leaders(score: Float[Tensor, "batch time lag"]) -> Bool[Tensor, "batch time lag"]:
    """Which lags have the largest score, up to rounding."""
    largest = score.amax(dim=-1, keepdim=True)
    return score >= largest - 1e-12 * largest.abs().clamp_min(1.0)


def _log_transitions(tokens: Int[Tensor, "batch time"], task: Task) -> Float[Tensor, "batch time lag"]:
    """log P[s_{i-k}, s_i], and 0 at the first max_lag positions, which no lag has made."""
    tokens = _check_tokens(tokens, task)
    size, time = tokens.shape
    log_P = task.P.log().flatten().to(tokens.device)
    out = torch.zeros((size, time, len(task.lags)), dtype=torch.float64, device=tokens.device)
    for j, lag in enumerate(task.lags):
        parents, children = tokens[:, task.max_lag - lag : time - lag], tokens[:, task.max_lag :]
        if children.shape[1]:
            out[:, task.max_lag :, j] = torch.take(log_P, parents * task.num_states + children)
    return out


def _context_ids(tokens: Int[Tensor, "batch time"], order: int) -> Int[Tensor, "batch position"]:
    """Equal numbers for equal runs of `order` tokens of the same sequence; none overflows, however long the run."""
    ids = torch.arange(tokens.shape[0], device=tokens.device)[:, None].expand_as(tokens)
    base = int(tokens.max()) + 1
    for back in range(order - 1, -1, -1):
        shifted = tokens[:, order - 1 - back : tokens.shape[1] - back]
        ids = ids[:, : shifted.shape[1]] * base + shifted
        ids = ids.unique(return_inverse=True)[1]
    return ids


def _check_tokens(tokens: Int[Tensor, "batch time"], task: Task) -> Int[Tensor, "batch time"]:
    if tokens.numel() and not (int(tokens.min()) >= 0 and int(tokens.max()) < task.num_states):
        outside = (tokens < 0) | (tokens >= task.num_states)
        row, position = outside.nonzero()[0].tolist()
        raise ValueError(
            f"tokens are states 0 to {task.num_states - 1}; "
            f"sequence {row} has {int(tokens[row, position])} at position {position}"
        )
    return tokens.long()


def _check_possible(log_likelihood: Float[Tensor, "batch time lag"]) -> None:
    if not log_likelihood.shape[1] or not torch.isneginf(log_likelihood[:, -1]).all(dim=-1).any():
        return  # likelihoods only fall, so the last position tells
    dead = torch.isneginf(log_likelihood).all(dim=-1)
    row = int(dead[:, -1].nonzero()[0])
    position = int(dead[row].nonzero()[0])
    raise ValueError(
        f"sequence {row} is impossible under every lag of the task from position {position} on: "
        "each lag has met a transition of probability 0"
    )
