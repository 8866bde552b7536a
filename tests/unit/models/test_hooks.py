"""PyTorch's own hooks at every named value of both models, against `run(replace=...)`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import sih
from sih.models import Model

TOKENS = torch.tensor([[0, 1, 2, 2, 1, 0], [2, 0, 0, 1, 2, 1]])


@pytest.fixture(params=["disentangled", "standard", "standard with MLPs"])
def model(request: pytest.FixtureRequest, rng: torch.Generator) -> Model:
    if request.param == "disentangled":
        return sih.DisentangledTransformer(
            3, 6, heads=(1, 2, 1), temperature=1.0, dtype=torch.float64, rng=rng
        )
    mlp_dim = 5 if "MLP" in request.param else None
    return sih.Transformer(3, 6, 4, 3, (1, 2, 1), mlp_dim, dtype=torch.float64, rng=rng)


@contextmanager
def hooked(module: nn.Module, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    handle = module.register_forward_hook(lambda _module, _inputs, output: change(output))
    try:
        yield
    finally:
        handle.remove()


def shifted(value: Tensor) -> Tensor:
    """A change that keeps -inf where it is, and is no law's nor another value's."""
    return value * 0.5 + torch.arange(value.shape[-1]) / 7


def in_place(value: Tensor) -> None:
    value.mul_(0.5).add_(torch.arange(value.shape[-1]) / 7)


def test_every_named_value_is_a_submodule(model: Model) -> None:
    points = model.hook_points()
    assert (
        list(points)
        == list(model.run(TOKENS).names)
        == list(model.trace(TOKENS, path=model.paths[-1]).names)
    )
    assert {
        "1.1/attention",
        "2.2/query",
        "2.2/key",
        "2.2/value",
        "3.1/output",
        "2/stream",
        "token",
    } <= set(points)
    inside = dict(model.named_modules())
    for name, module in points.items():
        assert model.get_submodule(name) is module
        assert inside[name if "/" in name else "/" + name] is module


def test_a_hook_reads_and_changes_what_run_does(model: Model) -> None:
    trace = model.run(TOKENS)
    for name, module in model.hook_points().items():
        seen: list[Tensor] = []
        with hooked(module, seen.append):
            assert torch.equal(model(TOKENS), trace.output)
        assert torch.equal(seen[0], trace[name])
        wanted = model.run(TOKENS, replace={name: shifted})
        for change in (shifted, in_place):
            with hooked(module, change):
                assert torch.equal(model(TOKENS), wanted.output), name
                assert torch.equal(model.predict(TOKENS), model.law(wanted.output))
                found = model.trace(TOKENS)
                for other in found.names:
                    assert torch.equal(found[other], wanted[other]), (name, other)
        assert not torch.equal(wanted[name], trace[name])
    torch.testing.assert_close(model(TOKENS), trace.output, rtol=0, atol=1e-12)


def test_other_hooks_act_too(model: Model) -> None:
    point = model.hook_points()["2.1/output"]
    wanted = model.run(TOKENS, replace={"2.1/output": 0.0}).output
    handle = point.register_forward_pre_hook(lambda _module, inputs: (inputs[0] * 0,))
    assert torch.equal(model(TOKENS), wanted)
    handle.remove()
    point.forward = lambda value: value * 0  # as nnsight does
    assert torch.equal(model(TOKENS), wanted)
    del point.forward
    model.set_submodule("2.1/output", nn.Dropout(1.0))
    assert torch.equal(model(TOKENS), wanted)


def test_gradients_pass_a_hook(model: Model) -> None:
    name = "2.1/attention"
    run = model.run(TOKENS)
    (wanted,) = torch.autograd.grad(run.output.pow(2).sum(), run[name])
    seen: list[Tensor] = []
    point = model.hook_points()[name]
    handle = point.register_full_backward_hook(lambda *gradients: seen.append(gradients[2][0]))
    model(TOKENS).pow(2).sum().backward()
    handle.remove()
    torch.testing.assert_close(seen[0], wanted, rtol=0, atol=1e-12)
    with hooked(point, shifted):
        weights = list(model.parameters())
        found = torch.autograd.grad(model(TOKENS).pow(2).sum(), weights)
        run = model.run(TOKENS)
    wanted_too = torch.autograd.grad(run.output.pow(2).sum(), weights)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted_too, strict=True))


def test_the_loss_calls_a_hook_for_each_part(model: Model) -> None:
    sizes: list[int] = []
    wanted = sih.next_token_loss(model, TOKENS, path=model.paths[-1])
    with hooked(model.hook_points()["1.1/attention"], lambda value: sizes.append(len(value))):
        loss = sih.next_token_loss(model, TOKENS, rows=1)
        loss.backward()
    assert sizes == [1, 1]
    torch.testing.assert_close(loss, wanted)


def test_without_hooks_the_equations_are_not_used(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = model(TOKENS)

    def refuse(*_: Any) -> Tensor:
        raise AssertionError("took the equations")

    monkeypatch.setattr(type(model), "equations", refuse)
    assert torch.equal(model(TOKENS), expected)
    with hooked(model.hook_points()["output"], lambda _: None), pytest.raises(AssertionError):
        model(TOKENS)
    assert torch.equal(model(TOKENS), expected)


def test_what_is_saved_and_trained_has_no_hook_points(model: Model) -> None:
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()]
    assert not any("/" in name for name in model.state_dict())
    assert not any(True for module in model.hook_points().values() for _ in module.parameters())
    assert "HookPoint" not in repr(model)


def test_a_copy_has_hook_points_of_its_own(model: Model) -> None:
    twin = copy.deepcopy(model)
    expected = model(TOKENS)
    with hooked(twin.hook_points()["1.1/output"], shifted):
        assert torch.equal(model(TOKENS), expected)
        assert not torch.equal(twin(TOKENS), expected)
        assert twin.hook_points().keys() == model.hook_points().keys()


def test_a_hook_that_cannot_act_raises(model: Model) -> None:
    container = model.get_submodule("layers.0" if isinstance(model, sih.Transformer) else "A")
    for module, name in ((container, r"layers\.0|A"), (model.get_submodule("2"), "2")):
        with (
            hooked(module, lambda _: None),
            pytest.raises(ValueError, match=f"nothing passes through '{name}'"),
        ):
            model(TOKENS)
    point = model.hook_points()["2.1/attention"]
    with (
        hooked(point, shifted),
        pytest.raises(ValueError, match=r"hooks at '2.1/attention' act on the path"),
    ):
        model(TOKENS, path=model.paths[0])
    with (
        hooked(point, lambda value: value[:1]),
        pytest.raises(ValueError, match=r"shape \(2, 6, 6\); got \(1, 6, 6\)"),
    ):
        model(TOKENS)


def test_traces_detach_and_runs_do_not(model: Model) -> None:
    for path in model.paths:
        if path != "compiled":
            trace = model.trace(TOKENS, path=path)
            assert not any(trace[name].requires_grad for name in trace.names)
    assert model.trace(TOKENS, detach=False)["2.1/scores"].requires_grad
    assert model.run(TOKENS)["2.1/scores"].requires_grad
