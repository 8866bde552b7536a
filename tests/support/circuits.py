"""Reading a constructed model."""

from __future__ import annotations

import torch
from torch import Tensor

from sih.circuits.any_circuit import AnyCircuit
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.disentangled.written import WrittenBlocks
from sih.task import Task


def blocks_of(circuit: AnyCircuit, task: Task) -> WrittenBlocks:
    """The blocks that a circuit writes, and no others."""
    blocks = WrittenBlocks(task.num_states, task.length, circuit.model_heads)
    circuit.write(blocks, task, "probability")
    return blocks


def third_layer(model: DisentangledTransformer, tokens: Tensor) -> Tensor:
    """(batch, time, lag): attention to the token each lag would copy, 0 where there is none."""
    attention = model.trace(tokens).attention[2][:, 0]
    out = torch.zeros(*tokens.shape, len(model.circuit.lags), dtype=torch.float64)
    for j, lag in enumerate(model.circuit.lags):
        i = torch.arange(lag - 1, tokens.shape[1])
        out[:, i, j] = attention[:, i, i - lag + 1].double()
    return out
