"""The standard transformer: the oracle, causality, initial weights."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from support import oracles_models as oracles
from support.shapes import standard_models
from torch import Tensor

import sih
from sih.models.fast import causal

Case = tuple[sih.Transformer, Tensor]


@pytest.fixture(autouse=True)
def small_row_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causal, "BLOCK_ROWS", 3)


@settings(max_examples=15)
@given(case=standard_models(max_length=6).filter(lambda case: case[0].config.activation == "relu"))
def test_plain_path_is_the_papers_equations(case: Case) -> None:
    model, tokens = case
    layers, mlps = [], []
    for layer in model.each_layer():
        layers.append(list(zip(layer.Q.tolist(), layer.K.tolist(), layer.V.tolist(), strict=True)))
        if layer.W1 is not None and layer.W2 is not None:
            mlps.append((layer.W1.tolist(), layer.W2.tolist()))
    for row in range(len(tokens)):
        expected = oracles.standard(
            tokens[row].tolist(),
            model.token.tolist(),
            model.position.tolist(),
            layers,
            mlps or None,
            model.readout.tolist(),
            model.config.temperature,
        )
        found = model(tokens, path="plain")[row]
        torch.testing.assert_close(
            found, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("path", ["plain", "fused"])
@pytest.mark.parametrize("mlp_dim", [None, 3])
def test_gradients_against_finite_differences(
    path: str, mlp_dim: int | None, rng: torch.Generator
) -> None:
    model = sih.Transformer(
        2, 4, 3, 2, (1, 2), mlp_dim, activation="gelu", dtype=torch.float64, rng=rng
    )
    tokens = torch.tensor([[0, 1, 1, 0], [1, 1, 0, 1]])

    def output(*weights: Tensor) -> Tensor:
        named = dict(zip((name for name, _ in model.named_parameters()), weights, strict=True))
        result: Tensor = torch.func.functional_call(model, named, (tokens,), {"path": path})
        return result

    assert torch.autograd.gradcheck(output, tuple(model.parameters()), atol=1e-7)


@given(case=standard_models(), data=st.data())
def test_no_position_sees_a_later_token(case: Case, data: st.DataObject) -> None:
    model, tokens = case
    cut = data.draw(st.integers(1, tokens.shape[1]))
    changed = tokens.clone()
    changed[:, cut:] = (changed[:, cut:] + 1) % model.config.num_states
    for path in ("plain", "fused"):
        full = model(tokens, path=path)
        torch.testing.assert_close(
            model(changed, path=path)[:, :cut], full[:, :cut], rtol=0, atol=1e-12
        )
        torch.testing.assert_close(
            model(tokens[:, :cut], path=path), full[:, :cut], rtol=0, atol=1e-12
        )


def test_initial_weights_are_the_documented_ones() -> None:
    model = sih.Transformer(50, 400, dim=100, qk_dim=32, heads=(1, 2), mlp_dim=64)
    assert model.config.temperature == math.sqrt(32)
    for embedding in (model.token, model.position):
        assert abs(embedding.std().item() - 1) < 0.03
    layer = model.each_layer()[1]
    assert layer.W2 is not None
    for weight, inputs in ((layer.Q, 100), (layer.V, 100), (model.readout, 100), (layer.W2, 64)):
        bound = 1 / math.sqrt(inputs)
        assert 0.98 * bound < weight.abs().max().item() <= bound
    normal = sih.Transformer(50, 400, dim=100, heads=(1,), init="normal")
    assert abs(normal.position.std().item() - 0.1) < 0.01


@pytest.mark.parametrize(
    "change", [{"dim": 0}, {"qk_dim": -1}, {"mlp_dim": 0}, {"activation": "tanh"}]
)
def test_bad_sizes_are_one_clear_error(change: dict[str, object]) -> None:
    with pytest.raises(
        ValueError, match=rf"{next(iter(change))} must be .*got {next(iter(change.values()))!r}"
    ):
        sih.Transformer(**{"num_states": 3, "length": 4, **change})  # type: ignore[arg-type]
