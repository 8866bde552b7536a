"""The fast path of the disentangled transformer: the dense equations' output and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from support.shapes import disentangled_models
from torch import Tensor

import sih
from sih.models.disentangled import structured

Case = tuple[sih.DisentangledTransformer, Tensor]


@pytest.fixture(autouse=True)
def small_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 rows, so that small models have several, and a ragged last one."""
    monkeypatch.setattr(structured, "BLOCK_ROWS", 3)


@given(case=disentangled_models(max_length=11))
def test_structured_path_has_the_same_output_and_gradients(case: Case) -> None:
    model, tokens = case
    dense, fast = model(tokens, path="dense"), model(tokens)
    torch.testing.assert_close(fast, dense, rtol=0, atol=1e-10)
    weight = torch.randn(dense.shape, generator=torch.Generator().manual_seed(1), dtype=dense.dtype)
    wanted = torch.autograd.grad((dense * weight).sum(), list(model.parameters()))
    found = torch.autograd.grad((fast * weight).sum(), list(model.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


def test_float32_paths_agree_at_the_papers_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    model = sih.DisentangledTransformer(5, 128, heads=(1, 3, 1), temperature=0.1)
    tokens = torch.randint(5, (2, 128), generator=torch.Generator().manual_seed(0))
    outputs = [model(tokens, path=path) for path in ("dense", "structured")]
    grads = [torch.autograd.grad(out.square().sum(), list(model.parameters())) for out in outputs]
    assert (outputs[0] - outputs[1]).norm() <= 1e-4 * outputs[0].norm()
    for dense, fast in zip(*grads, strict=True):
        assert (dense - fast).norm() <= 1e-4 * dense.norm()
