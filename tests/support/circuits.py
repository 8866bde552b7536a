"""Reading a constructed model."""

from __future__ import annotations

import torch
from torch import Tensor

from sih.models.disentangled.dense import DisentangledTransformer


def third_layer(model: DisentangledTransformer, tokens: Tensor) -> Tensor:
    """(batch, time, lag): attention to the token each lag would copy, 0 where there is none."""
    attention = model.trace(tokens).attention[2][:, 0]
    out = torch.zeros(*tokens.shape, len(model.circuit.lags), dtype=torch.float64)
    for j, lag in enumerate(model.circuit.lags):
        i = torch.arange(lag - 1, tokens.shape[1])
        out[:, i, j] = attention[:, i, i - lag + 1].double()
    return out
