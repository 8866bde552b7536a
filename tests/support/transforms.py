"""Torch's transforms and compiler on all kinds of model, run as a program: silence means that all is right."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.func import functional_call, grad, hessian, jvp, vmap

import sih
from sih.models import Model

TOKENS = torch.randint(3, (4, 9), generator=torch.Generator().manual_seed(0))


def check_transforms(model: Model) -> None:
    """`torch.func` against the equations: gradient, slope along a direction, each sequence on its own, Hessian."""
    weights = {key: weight.detach() for key, weight in model.named_parameters()}

    def loss(weights: dict[str, Tensor]) -> Tensor:
        output: Tensor = functional_call(model, weights, (TOKENS,))
        return output.pow(2).mean()

    expected = torch.autograd.grad(
        model(TOKENS, path=model.paths[-1]).pow(2).mean(), list(model.parameters())
    )
    for found, wanted in zip(grad(loss)(weights).values(), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    along = {key: torch.ones_like(weight) for key, weight in weights.items()}
    slope = torch.stack([g.sum() for g in expected]).sum()
    torch.testing.assert_close(jvp(loss, (weights,), (along,))[1], slope, rtol=1e-10, atol=1e-12)
    each = vmap(lambda tokens: model(tokens[None])[0])(TOKENS)
    torch.testing.assert_close(each, model(TOKENS), rtol=1e-10, atol=1e-12)
    # The output is linear in the readout: of its mean square the Hessian is 2 h h^T / count, whatever the readout.
    last = f"{len(model.config.heads)}/stream"
    h = model.run(TOKENS)[last][:, model.first :].flatten(0, 1)
    found = hessian(lambda part: loss({**weights, "readout": part}))(weights["readout"])
    for state in range(3):
        for other in range(3):
            wanted = 2 * h.T @ h / (3 * len(h)) * (state == other)
            torch.testing.assert_close(found[state, :, other], wanted, rtol=1e-9, atol=1e-12)


def check_compiled(model: Model) -> None:
    """`torch.compile` in one graph, of the default path and of the equations."""
    for path in (None, model.paths[-1]):
        compiled = torch.compile(
            lambda tokens, path=path: model(tokens, path=path), fullgraph=True, backend="aot_eager"
        )
        torch.testing.assert_close(compiled(TOKENS), model(TOKENS), rtol=1e-10, atol=1e-12)


if __name__ == "__main__":
    rng = torch.Generator().manual_seed(0)
    for model in (
        sih.Transformer(3, 9, dim=4, qk_dim=2, heads=(1, 2, 1), dtype=torch.float64, rng=rng),
        sih.DisentangledTransformer(3, 9, (1, 2, 1), dtype=torch.float64, rng=rng),
        sih.RelativeTransformer(
            3, 4, dim=4, qk_dim=2, heads=(1, 2, 1), dtype=torch.float64, rng=rng
        ),
        sih.DisentangledRelativeTransformer(3, 4, (1, 2, 1), dtype=torch.float64, rng=rng),
    ):
        check_transforms(model)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Dynamo detected a call to a `functools.lru_cache`")
            check_compiled(model)
