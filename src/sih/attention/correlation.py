r"""Correlation of scores and attention with transition probabilities or positions.

The construction's first layer has the score $\log P_{s_j,s_i}$ for a pair of tokens.
Its attention to the lags' tokens is thus their normalised probabilities
$\tilde p_{i,k}$ (paper, Sec. 5.1).
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sih.base.types import TokenTensor, TransitionMatrix
from sih.models.offsets import attention_to
from sih.predictors.evidence import normalised_probabilities
from sih.task import CausalTask, first_position

Maps = Float[Tensor, "batch query key"]
"""Scores or attention of one head."""
Keys = Bool[Tensor, "query key"]
"""Pairs (query, key) that enter."""


def score_correlation(
    scores: Maps, log_p: Maps, keys: Keys, *, apart_from_positions: bool = False
) -> Float[Tensor, " batch"]:
    r"""Return the correlation of $x_{ij} - \bar x_i$ with $y_{ij} - \bar y_i$ in every
    sequence.

    It is over the pairs in `keys`. Softmax ignores a constant per query, so each
    query's mean over its keys is subtracted. With `apart_from_positions` the mean over
    sequences at a pair of positions, $\bar x_{ij}$, is subtracted, too. The rest comes
    from the tokens alone, and any mask is gone.
    """
    x, y = (_centred(values.double(), keys, apart_from_positions) for values in (scores, log_p))
    return (x * y).sum(dim=(1, 2)) / (
        x.square().sum(dim=(1, 2)) * y.square().sum(dim=(1, 2))
    ).sqrt()


def explained_variance(
    scores: Maps, keys: Keys, by: Literal["offset", "positions"]
) -> Float[Tensor, " batch"]:
    r"""Return the share of the scores' variance within queries that positions explain.

    It is $1 - \sum (x_{ij} - \hat x_{ij})^2 / \sum x_{ij}^2$ in every sequence, with a
    constant per query subtracted from x, over the pairs in `keys`. $\hat x$ is the mean
    of x over all sequences at the offset i - j, or at the positions (i, j). A head with
    constant diagonals has 1 by offset.
    """
    x = _centred(scores.double(), keys, apart_from_positions=False)
    expected = x.mean(dim=0)
    if by == "offset":
        for offset in range(len(keys)):
            diagonal, inside = expected.diagonal(-offset), keys.diagonal(-offset)
            diagonal[:] = diagonal.sum() / inside.sum().clamp_min(1) * inside
    return 1 - (x - expected).square().sum(dim=(1, 2)) / x.square().sum(dim=(1, 2))


def share_by_tokens(attention: Maps, tokens: TokenTensor, queries: slice) -> float:
    r"""Return the share of attention's variation that two tokens explain.

    It is the variation between sequences. At each offset o, $a_{i,i-o}$ less its mean
    over sequences is compared with its mean given the tokens $(s_i, s_{i-o})$. With N
    values and n pairs of tokens that occur, the unexplained part is multiplied by
    $(N - 1) / (N - n)$, so that chance explains nothing. Offsets with $N < 4 n$ count
    as unexplained.
    """
    values = attention.double() - attention.double().mean(dim=0)
    states = int(tokens.max()) + 1
    left, whole = 0.0, 0.0
    for offset in range(queries.stop):
        query = torch.arange(max(queries.start, offset), queries.stop)
        y = values[:, query, query - offset].flatten()
        pairs = (states * tokens[:, query] + tokens[:, query - offset]).flatten()
        count = torch.bincount(pairs, minlength=states**2)
        total, seen = y.square().sum().item(), int((count > 0).sum())
        whole += total
        if len(y) < 4 * seen:
            left += total
            continue
        means = torch.zeros(states**2, dtype=y.dtype).index_add_(0, pairs, y) / count.clamp_min(1)
        rest = (y - means[pairs]).square().sum().item()
        left += rest * (len(y) - 1) / (len(y) - seen)
    return max(0.0, 1 - left / whole) if whole > 0 else 0.0


def _centred(values: Tensor, keys: Keys, apart_from_positions: bool) -> Tensor:
    inside = torch.where(keys, values, 0.0)
    inside = inside - inside.sum(dim=-1, keepdim=True) / keys.sum(dim=-1).clamp_min(1)[:, None]
    if apart_from_positions:
        inside = inside - inside.mean(dim=0)
    return torch.where(keys, inside, 0.0)


def pair_log_probabilities(tokens: TokenTensor, P: TransitionMatrix) -> Maps:
    r"""Return $\log P_{s_j, s_i}$ for every query i and key j.

    The transition is from the key's token to the query's.
    """
    if not (P > 0).all():
        raise ValueError(
            "a correlation with log P needs a P without zeros; their logarithm is -inf"
        )
    return P.log()[tokens[:, None, :], tokens[:, :, None]]


def probability_correlation(attention: Maps, tokens: TokenTensor, task: CausalTask) -> float:
    r"""Return the correlation of a head's attention at the lags with $\tilde p_{i,k}$.

    These are the normalised probabilities. The construction's first layer has 1. A head
    that ignores the tokens has 0 or less. The result is 0 where one of the two varies
    by no more than rounding, as with a single lag. Queries are those after the first
    max_lag that have a next token, because no model is trained at the last position.
    """
    queries = slice(first_position(task), tokens.shape[1] - 1)
    p_norm = normalised_probabilities(tokens, task)[:, queries]
    found = attention_to(attention, task.parents(tokens.shape[1]))[:, queries]
    pair = torch.stack([found.flatten().to(p_norm.dtype), p_norm.flatten()])
    varies = pair.std(dim=1) > 4 * torch.finfo(attention.dtype).eps
    return torch.corrcoef(pair)[0, 1].item() if varies.all() else 0.0
