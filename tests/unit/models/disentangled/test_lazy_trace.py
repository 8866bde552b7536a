"""Traces that are made when asked for: those of the dense equations, name by name."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from support.shapes import disentangled_models
from torch import Tensor

import sih
from sih.models.disentangled import structured

Case = tuple[sih.DisentangledTransformer, Tensor]


@pytest.fixture(autouse=True)
def small_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 rows, so that small models have several, and a ragged last one."""
    monkeypatch.setattr(structured, "BLOCK_ROWS", 3)


@settings(max_examples=15)
@given(case=disentangled_models())
def test_lazy_traces_are_the_dense_trace(case: Case) -> None:
    model, tokens = case
    model.requires_grad_(False)
    dense = model.trace(tokens, path="dense")
    for path in ("structured", "written"):
        fast = model.trace(tokens, path=path)
        assert fast.names == dense.names
        for name in dense.names:
            torch.testing.assert_close(fast[name], dense[name], rtol=0, atol=1e-10)
        for layer in range(len(model.config.heads)):
            torch.testing.assert_close(fast.scores[layer], dense.scores[layer], rtol=0, atol=1e-10)
