"""First and second derivatives of every path, and torch's transforms: right, or one clear line."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

import sih
from sih.models import Model
from sih.models.fast import compiled as library

TESTS = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (TESTS.parent / "src", TESTS)))}
TOKENS = torch.randint(3, (4, 9), generator=torch.Generator().manual_seed(0))


def models(dtype: torch.dtype = torch.float64) -> dict[str, Model]:
    rng = torch.Generator().manual_seed(0)
    return {
        "standard": sih.Transformer(3, 9, dim=4, qk_dim=2, heads=(1, 2, 1), dtype=dtype, rng=rng),
        "with MLPs": sih.Transformer(
            3, 9, dim=4, qk_dim=2, heads=(2, 1), mlp_dim=3, activation="gelu", dtype=dtype, rng=rng
        ),
        "disentangled": sih.DisentangledTransformer(3, 9, (1, 2, 1), dtype=dtype, rng=rng),
        "relative": sih.RelativeTransformer(
            3, 4, dim=4, qk_dim=2, heads=(1, 2, 1), start=True, dtype=dtype, rng=rng
        ),
    }


MODELS = models()
PATHS = [
    ("standard", "fused"),
    ("with MLPs", "fused"),
    ("disentangled", "structured"),
    ("relative", "fused"),
]


def output_loss(model: Model, path: str | None) -> Tensor:
    return nn.functional.cross_entropy(
        model(TOKENS, path=path)[:, :-1].flatten(0, 1), TOKENS[:, 1:].flatten()
    )


def hessian_vector(
    loss: Callable[[], Tensor], weights: Sequence[Tensor], along: Sequence[Tensor]
) -> list[Tensor]:
    first = torch.autograd.grad(loss(), weights, create_graph=True)
    slope = sum(
        ((g * v).sum() for g, v in zip(first, along, strict=True)),
        torch.zeros((), dtype=along[0].dtype),
    )
    return list(torch.autograd.grad(slope, weights))


def by_differences(
    loss: Callable[[], Tensor], weights: Sequence[Tensor], along: Sequence[Tensor]
) -> list[Tensor]:
    """(gradient at w + e v - gradient at w - e v) / 2e."""
    step, found = 1e-5, []
    for sign in (1, -1):
        with torch.no_grad():
            for weight, v in zip(weights, along, strict=True):
                weight += sign * step * v
        found.append(torch.autograd.grad(loss(), weights))
        with torch.no_grad():
            for weight, v in zip(weights, along, strict=True):
                weight -= sign * step * v
    return [(up - down) / (2 * step) for up, down in zip(*found, strict=True)]


def directions(model: Model) -> list[Tensor]:
    rng = torch.Generator().manual_seed(1)
    return [
        torch.randn(weight.shape, generator=rng, dtype=weight.dtype)
        for weight in model.parameters()
    ]


def close(found: Sequence[Tensor], expected: Sequence[Tensor], tolerance: float) -> None:
    scale = max(float(x.abs().max()) for x in expected)
    assert scale > 0
    for a, b in zip(found, expected, strict=True):
        assert float((a - b).abs().max()) <= tolerance * scale


@pytest.mark.parametrize(("name", "path"), PATHS)
def test_second_derivatives_are_the_equations_and_the_differences(name: str, path: str) -> None:
    model = MODELS[name]
    weights, along = list(model.parameters()), directions(model)
    found = hessian_vector(lambda: output_loss(model, path), weights, along)
    close(found, hessian_vector(lambda: output_loss(model, model.paths[-1]), weights, along), 1e-12)
    close(found, by_differences(lambda: output_loss(model, model.paths[-1]), weights, along), 1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_second_derivatives_of_the_loss(name: str) -> None:
    model = MODELS[name]
    weights, along = list(model.parameters()), directions(model)
    found = hessian_vector(lambda: sih.next_token_loss(model, TOKENS, rows=3), weights, along)
    close(found, by_differences(lambda: output_loss(model, model.paths[-1]), weights, along), 1e-6)
    weights[0].requires_grad_(False)
    try:  # frozen weights have no gradient of either order
        found = hessian_vector(lambda: sih.next_token_loss(model, TOKENS), weights[1:], along[1:])
        close(found, by_differences(lambda: output_loss(model, None), weights[1:], along[1:]), 1e-6)
    finally:
        weights[0].requires_grad_(True)


@pytest.mark.parametrize("name", MODELS)
def test_second_derivatives_of_the_loss_with_distributions(name: str) -> None:
    model = MODELS[name]
    weights, along = list(model.parameters()), directions(model)
    rng = torch.Generator().manual_seed(3)
    laws = torch.rand(
        *TOKENS.shape, model.config.num_states, generator=rng, dtype=torch.float64
    ).softmax(dim=-1)

    def by_definition() -> Tensor:
        predicted = model(TOKENS, path=model.paths[-1])[:, :-1].log_softmax(dim=-1)
        loss: Tensor = -(laws[:, :-1] * predicted).sum(dim=-1).mean()
        return loss

    found = hessian_vector(
        lambda: sih.next_token_loss(model, TOKENS, rows=3, laws=laws), weights, along
    )
    close(found, by_differences(by_definition, weights, along), 1e-6)


def test_second_derivatives_of_the_compiled_kernel() -> None:
    exact = MODELS["standard"]
    model = copy.deepcopy(exact).float()
    if library.library() is None:
        pytest.skip("no C compiler on this machine")
    along = directions(exact)
    found = hessian_vector(
        lambda: output_loss(model, "compiled"), list(model.parameters()), [v.float() for v in along]
    )
    expected = hessian_vector(lambda: output_loss(exact, "plain"), list(exact.parameters()), along)
    close([x.double() for x in found], expected, 1e-4)


@pytest.mark.parametrize(("name", "path"), PATHS)
def test_hessian_of_the_readout(name: str, path: str) -> None:
    """`torch.autograd.functional.hessian`, the readout's, through each path."""
    model = copy.deepcopy(MODELS[name])

    def loss(path: str) -> Callable[[Tensor], Tensor]:
        def of(readout: Tensor) -> Tensor:
            del model.readout
            model.readout = readout
            output: Tensor = model(TOKENS, path=path)
            return output.pow(3).sum()

        return of

    start = MODELS[name].get_parameter("readout").detach().clone()
    found = torch.autograd.functional.hessian(loss(path), start)
    close([found], [torch.autograd.functional.hessian(loss(model.paths[-1]), start)], 1e-12)


def test_transforms_and_compilation() -> None:
    """In a process of its own: what checks shapes in the tests is itself no code that torch can trace."""
    subprocess.run(
        [sys.executable, "-m", "support.transforms"], check=True, cwd=TESTS, env=ENVIRONMENT
    )


@pytest.mark.parametrize("name", MODELS)
def test_forward_derivatives(name: str) -> None:
    model = MODELS[name]
    with torch.autograd.forward_ad.dual_level():
        assert torch.isfinite(model(TOKENS)).all()


@pytest.mark.parametrize("name", MODELS)
def test_shapes_without_values(name: str) -> None:
    model = MODELS[name]
    shape = (*TOKENS.shape, 3)
    assert copy.deepcopy(model).to("meta")(TOKENS.to("meta")).shape == shape
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        output = model(mode.from_tensor(TOKENS))
        assert isinstance(output, FakeTensor)
        assert output.shape == shape
    with pytest.raises(ValueError, match=r"only the path .* can be traced or transformed"):
        copy.deepcopy(model).to("meta")(TOKENS.to("meta"), path=model.paths[0])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_copies(name: str, dtype: torch.dtype) -> None:
    model = copy.deepcopy(MODELS[name]).to(dtype)
    assert model(TOKENS).dtype == dtype
    again = copy.deepcopy(model)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(TOKENS), model(TOKENS))
    torch.testing.assert_close(model(TOKENS).double(), MODELS[name](TOKENS), rtol=0.1, atol=0.1)
