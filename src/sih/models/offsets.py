"""Attention by the distance from query to key."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor


def attention_at(
    attention: Float[Tensor, "*batch query key"], offsets: Sequence[int], absent: float = 0.0
) -> Float[Tensor, "*batch query offset"]:
    """Return the attention of query i to key i - o for every offset o.

    It is `absent` where there is no such key. The parent under lag k is at offset k.
    The token that lag k copies to predict the next one is at offset k - 1.
    """
    out = attention.new_full((*attention.shape[:-1], len(offsets)), absent)
    for index, offset in enumerate(offsets):
        out[..., offset:, index] = attention.diagonal(-offset, dim1=-2, dim2=-1)
    return out


def attention_to(
    attention: Float[Tensor, "*batch query key"], keys: Int[Tensor, "hypothesis query"]
) -> Float[Tensor, "*batch query hypothesis"]:
    """Return each query's attention to one key per hypothesis, 0 where the key is -1.

    `task.parents(time)` are the keys that each token follows, and
    `task.parents(time + 1)[:, 1:]` those that the next one does.
    """
    found = attention.gather(-1, keys.T.clamp_min(0).expand(*attention.shape[:-1], -1))
    return found.masked_fill(keys.T < 0, 0.0)
