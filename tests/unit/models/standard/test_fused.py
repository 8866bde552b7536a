"""The fast path of the standard transformer: the plain equations' output and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from support.shapes import standard_models
from torch import Tensor

import sih
from sih.models.fast import causal

Case = tuple[sih.Transformer, Tensor]


@pytest.fixture(autouse=True)
def small_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 3 rows, so that small models have several, and a ragged last one."""
    monkeypatch.setattr(causal, "BLOCK_ROWS", 3)


@given(case=standard_models(max_length=11))
def test_fused_path_has_the_same_output_and_gradients(case: Case) -> None:
    model, tokens = case
    plain, fast = model(tokens, path="plain"), model(tokens)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-10)
    weight = torch.randn(plain.shape, generator=torch.Generator().manual_seed(1), dtype=plain.dtype)
    wanted = torch.autograd.grad((plain * weight).sum(), list(model.parameters()))
    found = torch.autograd.grad((fast * weight).sum(), list(model.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_float32_paths_agree_at_the_papers_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    model = sih.Transformer(5, 128, dim=64, qk_dim=32, heads=(1, 3, 1))
    tokens = torch.randint(5, (2, 128), generator=torch.Generator().manual_seed(0))
    outputs = [model(tokens, path=path) for path in ("plain", "fused")]
    grads = [torch.autograd.grad(out.square().sum(), list(model.parameters())) for out in outputs]
    assert (outputs[0] - outputs[1]).norm() <= 1e-4 * outputs[0].norm()
    for plain, fast in zip(*grads, strict=True):
        assert (plain - fast).norm() <= 1e-4 * plain.norm()
