"""Reads attention by how far a key lies before its query."""

from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor


def attention_at(
    attention: Float[Tensor, "*batch query key"], offsets: Sequence[int], absent: float = 0.0
) -> Float[Tensor, "*batch query offset"]:
    """Give what query i pays to key i - o for every offset o, and `absent` where there is no such key.

    The parent that lag k names is at offset k. The token that lag k copies to predict the next one is at k - 1.
    """
    out = attention.new_full((*attention.shape[:-1], len(offsets)), absent)
    for index, offset in enumerate(offsets):
        out[..., offset:, index] = attention.diagonal(-offset, dim1=-2, dim2=-1)
    return out


def attention_to(
    attention: Float[Tensor, "*batch query key"], keys: Int[Tensor, "hypothesis query"]
) -> Float[Tensor, "*batch query hypothesis"]:
    """Return what each query pays to one key for each hypothesis, 0 where that is -1.

    `task.parents(time)` are the keys that each token follows, and
    `task.parents(time + 1)[:, 1:]` those that the next one does.
    """
    found = attention.gather(-1, keys.T.clamp_min(0).expand(*attention.shape[:-1], -1))
    return found.masked_fill(keys.T < 0, 0.0)
