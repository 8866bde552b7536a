"""The equations of the transformer with relative positions, with less work.

- One product per layer makes the queries, keys and values of all heads. The temperature
  goes into Q's weights.
- The first layer reads E[s]. Scores between two tokens, and between a token and an
  offset, are tables of S rows, which one-hot tokens look up. Its values are the
  one-hots, and its output is multiplied by E V afterwards.
- The readout is linear: the last layer's values are multiplied by it first, and are S
  wide, not d.
- Attention uses the offset without a gather (`sih.models.fast.by_offset`).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.models.fast.by_offset import attention_by_offset, scores_of_buckets, values_of_buckets
from sih.models.fast.causal import causal_attention
from sih.models.relative.relative_layer import RelativeLayer
from sih.models.relative.rotary import rotate

Stream = Float[Tensor, "batch time _"]
Weights = Float[Tensor, "head _ _"]


def forward(
    tokens: Int[Tensor, "batch time"],
    E: Float[Tensor, "state dim"],
    layers: Sequence[RelativeLayer],
    W_O: Float[Tensor, "_ dim"],
    temperature: float,
    compiled: bool,
) -> Stream:
    token = torch.eye(len(E), dtype=E.dtype, device=tokens.device)[tokens]
    h = token @ E
    for number, layer in enumerate(layers, 1):
        last = number == len(layers)
        Q, K, V = layer.Q / temperature, layer.K, layer.V @ W_O.T if last else layer.V
        aK, aV = (_falling(table, tokens.shape[1]) for table in (layer.aK, layer.aV))
        aV = aV @ W_O.T if last and aV is not None else aV
        if number > 1:
            output = _attend(h, Q, K, V, aK, aV, layer.rotary, compiled)
        elif _tables_pay(layer, len(E)):
            output = _look_up(token, E, Q, K, V, aK, aV, compiled)
        else:
            output = _attend(token, E @ Q, E @ K, E @ V, aK, aV, layer.rotary, compiled)
        if last:
            return h @ W_O.T + output
        h = h + output
    raise AssertionError("a model has at least one layer")


def _falling(table: Tensor | None, time: int) -> Tensor | None:
    """Return the vectors for a sequence of this length, by falling offset."""
    return None if table is None else table[:, :time].flip(1)


def _tables_pay(layer: RelativeLayer, states: int) -> bool:
    """Return whether scores and values by token are narrower than those by stream.

    Rotated queries and keys have no tables.
    """
    heads, dim, qk_dim = layer.Q.shape
    return not layer.rotary and states <= qk_dim and heads * states <= dim


def _attend(
    x: Stream,
    Q: Weights,
    K: Weights,
    V: Weights,
    aK: Weights | None,
    aV: Weights | None,
    rotary: bool,
    compiled: bool,
) -> Stream:
    """Return the outputs of a layer's heads, given their inputs."""
    heads, _, qk_dim = Q.shape
    qkv = x @ _side_by_side(Q, K, V)
    if rotary:
        qk, v = qkv.tensor_split([2 * heads * qk_dim], dim=-1)
        turned = rotate(qk.unflatten(-1, (2 * heads, qk_dim)).transpose(1, 2))
        qkv = torch.cat([turned.transpose(1, 2).flatten(2), v], dim=-1)
    if aK is None:
        return causal_attention(qkv, heads, qk_dim, compiled=compiled)
    r = scores_of_buckets(qkv[..., : heads * qk_dim], aK, compiled=compiled)
    output, u = attention_by_offset(qkv, r, heads, qk_dim, compiled=compiled)
    return output if aV is None else output + values_of_buckets(u, aV, compiled=compiled)


def _look_up(
    token: Stream,
    E: Tensor,
    Q: Weights,
    K: Weights,
    V: Weights,
    aK: Weights | None,
    aV: Weights | None,
    compiled: bool,
) -> Stream:
    """Return the outputs of the first layer's heads, from tables by token and offset.

    Each head's values are the one-hot tokens in columns of its own, so that the heads'
    sum keeps them apart.
    """
    heads, states = len(Q), len(E)
    query = E @ Q
    one = torch.eye(states, dtype=E.dtype, device=E.device).expand(heads, -1, -1)
    placed = torch.eye(heads * states, dtype=E.dtype, device=E.device).unflatten(0, (heads, states))
    qkv = token @ _side_by_side(query @ (E @ K).mT, one, placed)
    if aK is None:
        return causal_attention(qkv, heads, states, compiled=compiled) @ (E @ V).flatten(0, 1)
    r = token @ _side_by_side(query @ aK.mT)
    output, u = attention_by_offset(qkv, r, heads, states, compiled=compiled)
    output = output @ (E @ V).flatten(0, 1)
    return output if aV is None else output + values_of_buckets(u, aV, compiled=compiled)


def _side_by_side(*parts: Weights) -> Float[Tensor, "_ _"]:
    """Return the matrices of all heads in one row, [Q_1 .. Q_H | K_1 .. | V_1 ..]."""
    return torch.cat([part.transpose(0, 1).flatten(1) for part in parts], dim=1)
