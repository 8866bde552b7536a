"""The weights of one layer with relative positions, and the settings of `offsets`."""

import torch
from torch import nn

from sih.base.errors import FieldError

KEYS = ("both", "keys")
"""Settings in which scores read a vector for each offset."""
VALUES = ("both",)
"""Settings in which outputs include a vector for each offset."""
OFFSETS = ("both", "keys", "none", "rotary")


class RelativeLayer(nn.Module):
    """The weights of one layer. Weights that its setting of `offsets` does not use are
    absent.
    """

    def __init__(
        self, heads: int, dim: int, qk_dim: int, reach: int, offsets: str, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.rotary = offsets == "rotary"
        self.Q = nn.Parameter(torch.zeros(heads, dim, qk_dim, dtype=dtype))
        self.K = nn.Parameter(torch.zeros(heads, dim, qk_dim, dtype=dtype))
        self.V = nn.Parameter(torch.zeros(heads, dim, dim, dtype=dtype))
        buckets = reach + 1
        self.aK = (
            nn.Parameter(torch.zeros(heads, buckets, qk_dim, dtype=dtype))
            if offsets in KEYS
            else None
        )
        self.aV = (
            nn.Parameter(torch.zeros(heads, buckets, dim, dtype=dtype))
            if offsets in VALUES
            else None
        )


def offsets_by_layer(words: tuple[str, ...], layers: int) -> tuple[str, ...]:
    """Return the setting of each layer, given one for all or one for each.

    >>> offsets_by_layer(("both",), 3)
    ('both', 'both', 'both')
    """
    if len(words) not in (1, layers):
        wanted = f"one of {', '.join(OFFSETS)}, or such a word for each of the {layers} layers"
        raise FieldError("offsets", f"offsets is {wanted}, e.g. 'both'; got {words!r}")
    return words if len(words) == layers else words * layers
