"""The weights of one layer of the standard transformer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

ACTIVATIONS = {"relu": torch.relu, "gelu": nn.functional.gelu}


class Layer(nn.Module):
    """The weights of one layer.

    W_1 and W_2 are d x d_FF, as in the paper, and absent without an MLP.
    """

    def __init__(
        self, heads: int, dim: int, qk_dim: int, mlp_dim: int | None, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.Q = nn.Parameter(torch.zeros(heads, dim, qk_dim, dtype=dtype))
        self.K = nn.Parameter(torch.zeros(heads, dim, qk_dim, dtype=dtype))
        self.V = nn.Parameter(torch.zeros(heads, dim, dim, dtype=dtype))
        self.W1 = nn.Parameter(torch.zeros(dim, mlp_dim, dtype=dtype)) if mlp_dim else None
        self.W2 = nn.Parameter(torch.zeros(dim, mlp_dim, dtype=dtype)) if mlp_dim else None

    def mlp(
        self, h: Float[Tensor, "batch time dim"], activation: str
    ) -> Float[Tensor, "batch time dim"]:
        """Return sigma(h W_1) W_2^T."""
        assert self.W1 is not None
        assert self.W2 is not None
        return ACTIVATIONS[activation](h @ self.W1) @ self.W2.mT
