"""The equations of the standard transformer, with less work.

- One product per layer makes the queries, keys and values of all heads. The temperature
  goes into Q's weights.
- The first layer reads E[s] + F[i]: its products are those of the S rows of E and of
  the T rows of F, looked up.
- The readout is linear: without an MLP the last layer's values are multiplied by it
  first, and are S wide, not d.
- Attention is causal: rows are cut into blocks that never use later blocks' keys
  (`sih.models.fast.causal`).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import Law, TokenTensor
from sih.models.fast.causal import causal_attention
from sih.models.standard.layer import Layer


def forward(
    tokens: TokenTensor,
    E: Float[Tensor, "state dim"],
    F: Float[Tensor, "length dim"],
    layers: Sequence[Layer],
    W_O: Float[Tensor, "state dim"],
    temperature: float,
    activation: str,
    compiled: bool,
) -> Law:
    token = torch.eye(E.shape[0], dtype=E.dtype, device=tokens.device)[tokens]
    F = F[: tokens.shape[1]]
    h = token @ E + F
    for number, layer in enumerate(layers, 1):
        heads, _, qk_dim = layer.Q.shape
        last = number == len(layers) and layer.W1 is None
        V = layer.V @ W_O.T if last else layer.V
        parts = (layer.Q / temperature, layer.K, V)
        W = torch.cat(
            [part.transpose(0, 1).flatten(1) for part in parts], dim=1
        )  # [Q_1 .. Q_H | K_1 .. | V_1 ..]
        # A product with one-hot tokens is a look-up. Its gradient is a product, too, not a scatter.
        qkv = token @ (E @ W) + F @ W if number == 1 else h @ W
        output = causal_attention(qkv, heads, qk_dim, compiled=compiled)
        if last:
            return h @ W_O.T + output
        h = h + output
        if layer.W1 is not None:
            h = h + layer.mlp(h, activation)
    return h @ W_O.T
