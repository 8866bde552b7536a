"""The standard transformer for training: the same numbers as the plain equations, with less work.

- One product a layer makes the queries, keys and values of all heads; the temperature goes into Q's weights.
- The first layer reads E[s] + F[i]: its products are those of the S rows of E and of the T rows of F, looked
  up.
- The readout is linear: without an MLP the last layer's values are multiplied by it first, and are S wide,
  not d.
- Attention is causal: rows go in blocks that never see later blocks' keys (`sih.models.causal`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.models.causal import causal_attention

if TYPE_CHECKING:
    from sih.models.standard import Transformer


def forward(model: Transformer, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time state"]:
    config = model.config
    token = torch.eye(config.num_states, dtype=model.token.dtype, device=tokens.device)[tokens]
    position = model.position[: tokens.shape[1]]
    fold = config.mlp_dim is None
    h = token @ model.token + position
    for number, layer in enumerate(model.each_layer(), 1):
        last = fold and number == len(config.heads)
        V = layer.V @ model.readout.T if last else layer.V
        W = _side_by_side(layer.Q / config.temperature, layer.K, V)
        # A product with the one-hot tokens is a look-up whose gradient is a product as well, not a scatter.
        qkv = token @ (model.token @ W) + position @ W if number == 1 else h @ W
        output = causal_attention(qkv, config.heads[number - 1], config.qk_dim)
        if last:
            return h @ model.readout.T + output
        h = h + output
        if config.mlp_dim is not None:
            h = h + model.mlp(layer, h)
    return h @ model.readout.T


def _side_by_side(*weights: Float[Tensor, "head dim _"]) -> Float[Tensor, "dim columns"]:
    """[Q_1 .. Q_H | K_1 .. K_H | V_1 .. V_H]: one matrix for all heads."""
    return torch.cat([weight.transpose(0, 1).flatten(1) for weight in weights], dim=1)
