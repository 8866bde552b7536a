"""The fast paths of the transformer with relative positions: derivatives, and layers in which tables do not pay."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

import sih
from sih.models.fast import compiled

CASES: list[dict[str, Any]] = [
    {"reach": 3},
    {"reach": 100},
    {"reach": 2, "heads": (2, 1), "start": True},
    {"reach": 3, "heads": (2, 3, 1), "offsets": ("both", "none", "keys")},
    {"reach": 1, "offsets": "keys", "start": True},
    {"reach": 4, "offsets": "none"},
    {"reach": 4, "offsets": "rotary"},
    {"reach": 4, "heads": (2, 2), "offsets": ("rotary", "both"), "start": True},
    {"reach": 5, "heads": (1,)},
    {"reach": 5, "num_states": 9},
    {"reach": 5, "num_states": 4, "heads": (3, 1)},
]
"""The last two have more states than queries are wide, and more than fit beside one another in the stream."""


@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("path", ["fused", "compiled"])
def test_second_derivatives_of_the_fast_paths(sizes: dict[str, Any], path: str) -> None:
    """In a model the scores by offset are made from the queries: neither may be counted through the other."""
    if path == "compiled" and compiled.library() is None:
        pytest.skip("no C compiler on this machine")
    dtype = torch.float32 if path == "compiled" else torch.float64
    model = sih.RelativeTransformer(
        **{"num_states": 3, "dim": 8, "qk_dim": 4, "rng": 1, "dtype": dtype, **sizes}
    )
    tokens = torch.randint(3, (2, 9), generator=torch.Generator().manual_seed(0))
    weights, found = list(model.parameters()), []
    gradients = partial(
        torch.autograd.grad, inputs=weights, allow_unused=True, materialize_grads=True
    )
    for way in (path, "plain"):
        loss = torch.nn.functional.cross_entropy(model(tokens, path=way)[:, :-1].mT, tokens[:, 1:])
        first = gradients(loss, create_graph=True)
        second = gradients(torch.stack([(x**2).sum() for x in first]).sum())
        found.append((*first, *second))
    for x, y in zip(*found, strict=True):
        assert (x - y).abs().max() <= (1e-12 if path == "fused" else 1e-4) * max(
            1.0, y.abs().max().item()
        )


@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("path", ["fused", "compiled"])
def test_derivatives_of_the_fast_paths(sizes: dict[str, Any], path: str) -> None:
    if path == "compiled" and compiled.library() is None:
        pytest.skip("no C compiler on this machine")
    dtype = torch.float32 if path == "compiled" else torch.float64
    model = sih.RelativeTransformer(
        **{"num_states": 3, "dim": 8, "qk_dim": 4, "rng": 1, "dtype": dtype, **sizes}
    )
    tokens = torch.randint(3, (3, 70), generator=torch.Generator().manual_seed(0))
    grads = []
    for way in (path, "plain"):
        model.zero_grad()
        torch.nn.functional.cross_entropy(
            model(tokens, path=way)[:, :-1].mT, tokens[:, 1:]
        ).backward()
        grads.append([weight.grad for weight in model.parameters()])
    for x, y in zip(*grads, strict=True):
        assert x is not None
        assert y is not None
        assert (x - y).abs().max() <= (1e-12 if path == "fused" else 1e-5) * max(
            1.0, y.abs().max().item()
        )
