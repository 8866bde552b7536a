r"""Evidence of each token for each hypothesis of a task, at every position of a batch.

Under hypothesis h token i has probability $p_{i,h}$ given the tokens before it. With a
known matrix this is $P_{s_j,\,s_i}$ with j its parent, or $\pi_{s_i}$ without a parent.
With an unknown matrix it is the posterior predictive probability (`task/counting.py`).
A token counts unless it has no parent under any hypothesis. In a task with lags,
$p_{i,k} = P_{s_{i-k},\,s_i}$ after the first max_lag tokens. Arithmetic is float64, and
likelihoods are kept as logarithms.

A probability of 0 is allowed. A hypothesis under which the sequence so far is
impossible has likelihood 0 and weight 0. A sequence impossible under every hypothesis
is an error.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, as_tokens, described
from sih.base.types import Tokens
from sih.task import CausalTask, Laws, MatrixTask, RowLaws, check_task, has_parent, possible


def log_probabilities(
    tokens: Tokens, task: CausalTask, log_P: Float[Tensor, "state state"] | None = None
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Return $\log p_{i,h}$, and 0 where a token does not count.

    `log_P` replaces log P, for example by a table with a finite number in place of log
    0.
    """
    tokens = check_states(tokens, task)
    if log_P is None:
        return task.laws(tokens).log_probabilities()
    check_task(task, MatrixTask)
    assert isinstance(task, MatrixTask)
    return RowLaws(tokens, task.parents, task.P[None], task.initial).log_probabilities(log_P[None])


def normalised_probabilities(
    tokens: Tokens, task: CausalTask, *, temper: float = 1.0, log_P: Tensor | None = None
) -> Float[Tensor, "batch time hypothesis"]:
    r"""Return $\tilde p_{i,h} = p_{i,h}^\gamma / \sum_l p_{i,l}^\gamma$, a comparison
    of hypotheses.

    γ is `temper`, 1 in the paper (Sec. 5.1). The result is 0 where a token does not
    count. `log_P` is as in `log_probabilities`.
    """
    return normalised_of(log_probabilities(tokens, task, log_P), task, temper)


def normalised_of(
    log_p: Float[Tensor, "batch time hypothesis"], task: CausalTask, temper: float = 1.0
) -> Float[Tensor, "batch time hypothesis"]:
    """Return `normalised_probabilities`, given the logarithms of the probabilities."""
    counts = has_parent(task.parents(log_p.shape[1])).to(log_p.device)
    return torch.softmax(temper * log_p, dim=-1) * counts[:, None]


def lag_log_likelihood(tokens: Tokens, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    r"""Return each hypothesis's log-likelihood,
    $\ell_{i,h} = \sum_{n \le i} \log p_{n,h}$.

    The sum is over the tokens that have a parent. Paper: Sec. 4, "Data",
    $\ell_{i,k} = \sum_{n=\hat k+1}^{i} \log P_{s_{n-k},\,s_n}$. The factor
    $\prod_{i \le \hat k} \pi(s_i)$, common to all lags, is left out. All lags are
    compared on the same tokens, those after the first max_lag.

    With an unknown matrix this is the marginal likelihood. Where hypotheses switch, it
    is the likelihood of all tokens so far and of h for the next token.

    Args:
        tokens: (batch, time), the sequences.
        task: the task they come from.

    Returns:
        The log-likelihoods, (batch, time, hypothesis).

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.lag_log_likelihood(tokens, task)[0]
    tensor([[ 0.0000,  0.0000],
            [ 0.0000,  0.0000],
            [-0.5108, -1.6094],
            [-1.4271, -2.5257]], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    return log_likelihood_of(task.laws(tokens), task)


def lag_posterior(tokens: Tokens, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    r"""Return the posterior $\mathbb{P}(h \mid X_{\le i})$ at every position.

    In a task with lags this is the posterior over lags. Where hypotheses switch, h is
    the hypothesis of the next token.

    Args:
        tokens: (batch, time), the sequences.
        task: the task they come from.

    Returns:
        The probabilities, (batch, time, hypothesis).

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.lag_posterior(tokens, task)[0]
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.7500, 0.2500]], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    return posterior_of(task.laws(tokens), task)


def log_likelihood_of(laws: Laws, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    """Return `lag_log_likelihood`, given the distributions of the tokens."""
    return possible(task.log_likelihood(laws.log_probabilities()))


def posterior_of(laws: Laws, task: CausalTask) -> Float[Tensor, "batch time hypothesis"]:
    """Return `lag_posterior`, given the distributions of the tokens."""
    return task.posterior(laws.log_probabilities())


def mixture(
    weights: Float[Tensor, "batch time hypothesis"], tokens: Tokens, task: CausalTask
) -> Float[Tensor, "batch time state"]:
    r"""Return the weighted average of next-token distributions,
    $\sum_h w_{i,h} P_{s_j,\,\cdot}$.

    j is the next token's parent under h. In a task with lags this is
    $\sum_k w_{i,k} P_{s_{i-k+1},\,\cdot}$, with one term for the token that each lag
    would copy. Where the next token has no parent, it is the initial distribution,
    whatever the weights. Gradients pass to the weights.

    Args:
        weights: (batch, time, hypothesis), the weight of each hypothesis at every
            position.
        tokens: (batch, time), the sequences.
        task: the task with these hypotheses and P.

    Returns:
        The distributions of the next token, (batch, time, state).

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=8)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])  # lag 1 made 1 -> 1 -> 0; lag 2 would have made 0 -> 1, 1 -> 0
    >>> sih.mixture(torch.full((1, 4, 2), 0.5, dtype=torch.float64), tokens, task)[0]
    tensor([[0.6667, 0.3333],
            [0.6000, 0.4000],
            [0.4000, 0.6000],
            [0.6000, 0.4000]], dtype=torch.float64)
    """
    tokens = check_states(tokens, task)
    shape = (*tokens.shape, len(task.hypotheses))
    if not isinstance(weights, Tensor) or weights.shape != shape:
        raise FieldError(
            "weights", f"weights must be a tensor of shape {shape}; got {described(weights)}"
        )
    return task.laws(tokens).mixture(weights)


def check_states(tokens: Tokens, task: CausalTask) -> Int[Tensor, "batch time"]:
    """Return the tokens as int64, or raise a FieldError for an unknown state."""
    check_task(task)
    tokens = as_tokens(tokens)
    num_states = task.num_states
    if tokens.numel() and not (int(tokens.min()) >= 0 and int(tokens.max()) < num_states):
        row, i = ((tokens < 0) | (tokens >= num_states)).nonzero()[0].tolist()
        found = f"sequence {row} has {int(tokens[row, i])} at position {i}"
        raise FieldError("tokens", f"tokens are states 0 to {num_states - 1}; {found}")
    return tokens
