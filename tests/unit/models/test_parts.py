"""A whole batch that goes through a fast path in parts: the same numbers, derivatives and habits as in one piece."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

import sih
from sih.models import Model, base
from sih.models.fast.threads import limited_threads
from sih.models.parts import in_parts

TOKENS = torch.randint(3, (70, 130), generator=torch.Generator().manual_seed(0))
KINDS = ("standard", "relative")


def model_of(
    kind: str, dtype: torch.dtype = torch.float64
) -> sih.Transformer | sih.RelativeTransformer:
    if kind == "standard":
        return sih.Transformer(3, 130, dim=6, qk_dim=2, heads=(1, 2), dtype=dtype, rng=1)
    return sih.RelativeTransformer(
        3, 9, dim=6, qk_dim=2, heads=(1, 2), start=True, dtype=dtype, rng=1
    )


def loss_of(model: Model, path: str | None = None) -> Tensor:
    return nn.functional.cross_entropy(
        model(TOKENS, path=path)[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten()
    )


def gradients(model: Model, path: str | None = None) -> list[Tensor]:
    return [*torch.autograd.grad(loss_of(model, path), list(model.parameters()))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_values_and_gradients_are_those_of_the_equations(kind: str, threads: int) -> None:
    model = model_of(kind)
    with limited_threads(threads), patch.object(base, "in_parts", wraps=in_parts) as parts:
        found = model(TOKENS)
        assert parts.call_count == 1  # or this would test nothing
        torch.testing.assert_close(found, model(TOKENS, path="plain"), rtol=0, atol=1e-12)
        for x, y in zip(gradients(model), gradients(model, "plain"), strict=True):
            torch.testing.assert_close(x, y, rtol=0, atol=1e-12)
        calls = parts.call_count
        model(TOKENS[:32])
        with torch.no_grad():
            model(TOKENS)
        assert parts.call_count == calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bytes_with_the_same_threads(kind: str, threads: int) -> None:
    model = model_of(kind, torch.float32)
    with limited_threads(threads):
        assert all(
            torch.equal(x, y) for x, y in zip(gradients(model), gradients(model), strict=True)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives(kind: str) -> None:
    model = model_of(kind)
    weights = list(model.parameters())
    found = []
    for path in (None, "plain"):
        first = torch.autograd.grad(loss_of(model, path), weights, create_graph=True)
        found.append(torch.autograd.grad(torch.stack([(g**2).sum() for g in first]).sum(), weights))
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_is_kept_only_if_asked_for(kind: str) -> None:
    model = model_of(kind)
    loss = loss_of(model)
    loss.backward(retain_graph=True)
    assert model.readout.grad is not None
    once = model.readout.grad.clone()
    loss.backward()
    torch.testing.assert_close(model.readout.grad, 2 * once)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


@pytest.mark.parametrize("kind", KINDS)
def test_frozen_and_replaced_weights(kind: str) -> None:
    model, whole = model_of(kind), model_of(kind)
    model.token.requires_grad_(False)
    loss_of(model).backward()
    loss_of(whole, "plain").backward()
    assert model.token.grad is None
    torch.testing.assert_close(model.readout.grad, whole.readout.grad, rtol=0, atol=1e-12)
    scale, readout, wanted = (
        torch.ones((), dtype=torch.float64, requires_grad=True),
        whole.readout,
        whole.readout.grad,
    )
    assert wanted is not None
    del model.readout
    # no parameter any more: what it was made of still gets its gradient
    setattr(model, "readout", scale * readout.detach())  # noqa: B010
    loss_of(model).backward()
    assert scale.grad is not None
    assert scale.grad.item() == pytest.approx((wanted * readout).sum().item(), abs=1e-12)
