from __future__ import annotations

from typing import Any

import pytest
import torch
from support.oracles_lens import native_pass

import sih
from sih.beyond.transformer_lens.lens_weights import from_lens_weights, lens_config, lens_weights

MODELS: dict[str, dict[str, Any]] = {
    "attention only": {"dim": 6, "qk_dim": 4, "heads": (2, 1, 3)},
    "wide queries, MLPs": {
        "dim": 4,
        "qk_dim": 7,
        "heads": (1, 2),
        "mlp_dim": 5,
        "activation": "gelu",
    },
    "temperature 1": {"dim": 5, "qk_dim": 5, "heads": (2,), "mlp_dim": 3, "temperature": 1.0},
    "low temperature": {"dim": 5, "qk_dim": 5, "heads": (1, 1), "temperature": 0.3},
}


def _same_pass(
    model: sih.Transformer,
    config: dict[str, Any],
    weights: dict[str, Any],
    tokens: torch.Tensor,
    atol: float = 1e-10,
) -> None:
    trace = model.trace(tokens)
    for row, sequence in enumerate(tokens.tolist()):
        output, patterns = native_pass(config, weights, sequence)
        torch.testing.assert_close(
            trace.output[row], torch.tensor(output, dtype=torch.float64), atol=atol, rtol=0
        )
        for layer, attention in enumerate(trace.attention):
            wanted = torch.tensor(patterns[layer], dtype=torch.float64)[: attention.shape[1]]
            torch.testing.assert_close(attention[row], wanted, atol=atol, rtol=0)


@pytest.mark.parametrize("name", MODELS)
def test_their_pass_of_our_weights_is_ours_and_back(name: str, rng: torch.Generator) -> None:
    model = sih.Transformer(num_states=3, length=7, dtype=torch.float64, rng=rng, **MODELS[name])
    tokens = torch.randint(3, (2, 7), generator=rng)
    config, weights = lens_config(model), lens_weights(model)
    assert {weight.dtype for weight in weights.values()} == {torch.float64}
    _same_pass(model, config, weights, tokens)
    back = from_lens_weights(config, weights)
    assert back.config == model.config
    assert all(
        torch.equal(a, b) for a, b in zip(back.parameters(), model.parameters(), strict=True)
    )


@pytest.mark.parametrize("target", ["paper", "bayes", "two-lags"])
def test_circuits_are_written_in_the_width_they_use(target: str, rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=7)
    model = sih.to_standard(sih.construct(task, target=target))
    config, weights = lens_config(model), lens_weights(model)
    assert config["d_head"] == model.config.qk_dim < model.config.dim
    tokens = sih.sample(task, 2, rng=rng).tokens
    _same_pass(
        model, config, weights, tokens, 1e-7 if target == "bayes" else 1e-10
    )  # its exponent is 1e-8: it cancels
    back = from_lens_weights(config, weights, "probability")
    assert back.config.heads == model.config.heads
    torch.testing.assert_close(back(tokens), model(tokens), atol=1e-7, rtol=0)


@pytest.mark.parametrize("activation", ["relu", "gelu", None])
def test_biases_become_a_coordinate_that_is_one(
    activation: str | None, rng: torch.Generator
) -> None:
    shape: dict[str, Any] = {"mlp_dim": 5, "activation": activation} if activation else {}
    model = sih.Transformer(3, 6, 4, 3, (2, 2), dtype=torch.float64, rng=rng, **shape)
    config, weights = lens_config(model), lens_weights(model)
    for name in weights:
        if name.endswith(".bias"):
            weights[name] = torch.randn(weights[name].shape, generator=rng, dtype=torch.float64)
    weights["unembed.bias"] = torch.randn(3, generator=rng, dtype=torch.float64)
    back = from_lens_weights(config, weights)
    assert back.config.dim == 5
    _same_pass(back, config, weights, torch.randint(3, (2, 6), generator=rng))


def test_a_layer_that_writes_nothing_keeps_a_head(rng: torch.Generator) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), dtype=torch.float64, rng=rng)
    with torch.no_grad():
        model.each_layer()[1].V.zero_()
        model.each_layer()[1].Q.zero_()
    back = from_lens_weights(lens_config(model), lens_weights(model))
    tokens = torch.randint(3, (2, 6), generator=rng)
    assert back.config.heads == (2, 1)
    torch.testing.assert_close(back(tokens), model(tokens))


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("normalization_type", "LN"),
        ("positional_embedding_type", "rotary"),
        ("attention_dir", "bidirectional"),
        ("gated_mlp", True),
        ("n_key_value_heads", 1),
        ("act_fn", "silu"),
        ("attn_scores_soft_cap", 30.0),
        ("d_vocab_out", 7),
        ("architecture", "GPT2LMHeadModel"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    entry: str, value: Any, rng: torch.Generator
) -> None:
    model = sih.Transformer(3, 6, 4, 3, (2, 1), mlp_dim=4, rng=rng)
    with pytest.raises(ValueError, match=str(value)) as error:
        from_lens_weights({**lens_config(model), entry: value}, lens_weights(model))
    assert "\n" not in str(error.value)
