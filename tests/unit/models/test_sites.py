"""Traces and interventions on both models."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from support.shapes import disentangled_models, standard_models
from torch import Tensor

import sih
from sih.models import Model

TOKENS = torch.tensor([[0, 1, 2, 2, 1, 0], [2, 0, 0, 1, 2, 1]])


@pytest.fixture(params=["disentangled", "standard", "standard with MLPs"])
def model(request: pytest.FixtureRequest, rng: torch.Generator) -> Model:
    if request.param == "disentangled":
        return sih.DisentangledTransformer(
            3, 6, heads=(1, 3, 1), temperature=1.0, dtype=torch.float64, rng=rng
        )
    mlp_dim = 5 if "MLP" in request.param else None
    return sih.Transformer(3, 6, 4, 3, (1, 3, 1), mlp_dim, dtype=torch.float64, rng=rng)


def test_shapes_and_laws(model: Model) -> None:
    trace = model.trace(TOKENS)
    torch.testing.assert_close(trace.output, model(TOKENS), rtol=0, atol=1e-12)
    later = torch.ones(6, 6).triu(1).bool()
    for layer, count in enumerate((1, 3, 1)):
        attention, scores = trace.attention[layer], trace.scores[layer]
        assert attention.shape == scores.shape == (2, count, 6, 6)
        torch.testing.assert_close(attention.sum(-1), torch.ones(2, count, 6).double())
        assert (attention[..., later] == 0).all()
        assert (scores[..., later] == -torch.inf).all()
        torch.testing.assert_close(
            torch.softmax(scores / model.config.temperature, dim=-1), attention
        )


def test_both_models_use_the_same_names(rng: torch.Generator) -> None:
    standard = sih.Transformer(3, 6, 4, 3, (1, 3, 1), rng=rng)
    disentangled = sih.DisentangledTransformer(3, 6, heads=(1, 3, 1), rng=rng)
    assert set(standard.trace(TOKENS).names) <= set(disentangled.trace(TOKENS).names)


def test_a_standard_stream_is_the_sum_of_what_was_written_to_it(rng: torch.Generator) -> None:
    trace = sih.Transformer(3, 6, 4, 3, (1, 3, 1), mlp_dim=5, dtype=torch.float64, rng=rng).trace(
        TOKENS
    )
    total = trace.stream("token") + trace.stream("position")
    for layer, count in enumerate((1, 3, 1), 1):
        total = total + sum(trace.stream(f"{layer}.{head}/output") for head in range(1, count + 1))
        total = total + trace.stream(f"{layer}/mlp")
        torch.testing.assert_close(trace.stream(f"{layer}/stream"), total)


def test_patching_a_run_with_itself_changes_nothing(model: Model) -> None:
    trace = model.run(TOKENS)
    for name in trace.names:
        again = model.run(TOKENS, replace={name: trace[name]})
        for other in trace.names:
            torch.testing.assert_close(again[other], trace[other], rtol=0, atol=0)


def test_ablating_a_head_is_zeroing_what_reads_it(rng: torch.Generator) -> None:
    """In the disentangled model: remove its output, or every weight that reads its blocks."""
    model = sih.DisentangledTransformer(
        3, 6, heads=(1, 3, 1), temperature=1.0, dtype=torch.float64, rng=rng
    )
    ablated = model.run(TOKENS, replace={"2.2/output": 0.0})
    assert (ablated.output - model(TOKENS)).abs().max() > 1e-3
    for name in model.stream(2).names:
        if name.startswith("2.2/"):
            for other in model.stream(2).names:
                model.block("3.1", name, other).zero_()
                model.block("3.1", other, name).zero_()
    for name in model.stream(3).names:
        if "2.2/" in name:
            model.readout_block(name).zero_()
    torch.testing.assert_close(model(TOKENS), ablated.output, rtol=0, atol=1e-12)


def test_ablating_a_standard_head_is_zeroing_its_values(rng: torch.Generator) -> None:
    model = sih.Transformer(3, 6, 4, 3, (1, 3, 1), dtype=torch.float64, rng=rng)
    ablated = model.run(TOKENS, replace={"2.2/output": 0.0})
    assert (ablated.output - model(TOKENS)).abs().max() > 1e-3
    with torch.no_grad():
        model.each_layer()[1].V[1] = 0
    torch.testing.assert_close(model(TOKENS), ablated.output, rtol=0, atol=1e-12)


def test_what_comes_before_a_replacement_stays_and_what_follows_is_redone(model: Model) -> None:
    trace = model.trace(TOKENS)
    uniform = torch.ones(6, 6).double().tril() / torch.arange(1, 7)[:, None]
    run = model.run(
        TOKENS, replace={"2.1/attention": uniform, "1.1/scores": lambda scores: 2 * scores}
    )
    assert torch.equal(run["1.1/scores"], 2 * model.run(TOKENS)["1.1/scores"])
    torch.testing.assert_close(run.attention[1][:, 0], uniform.expand(2, -1, -1))
    assert torch.equal(run.stream("0/stream"), trace.stream("0/stream"))
    assert not torch.allclose(run.attention[0], trace.attention[0])
    assert not torch.allclose(run.output, trace.output)


def test_a_replaced_block_is_seen_in_the_heads_output(rng: torch.Generator) -> None:
    model = sih.DisentangledTransformer(3, 6, heads=(1, 2), dtype=torch.float64, rng=rng)
    run = model.run(TOKENS, replace={"2.1/1.1/position": 0.0})
    stream = model.stream(1)
    assert run["2.1/output"][..., stream["1.1/position"]].abs().max() == 0
    assert run["2/stream"][..., model.stream(2)["2.1/1.1/position"]].abs().max() == 0
    assert run["2.1/output"][..., stream["1.1/token"]].abs().max() > 0


def test_wrong_names_and_shapes_are_one_clear_error(model: Model) -> None:
    with pytest.raises(
        ValueError, match=r"nothing to replace is called '2\.4/output'; there are token, position"
    ):
        model.run(TOKENS, replace={"2.4/output": 0.0})
    with pytest.raises(
        ValueError,
        match=r"replacement for '2.1/attention' must have shape \(2, 6, 6\).*got \(5, 5\)",
    ):
        model.run(TOKENS, replace={"2.1/attention": torch.zeros(5, 5)})
    with pytest.raises(
        ValueError, match=r"made nothing called '2\.4/output'; it made token, position"
    ):
        model.trace(TOKENS)["2.4/output"]


def test_gradients_flow_through_an_intervention(model: Model) -> None:
    run = model.run(TOKENS, replace={"2.2/output": lambda value: 0.5 * value})
    run.output.square().sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@settings(max_examples=10)
@given(one=disentangled_models(), other=standard_models())
def test_a_trace_is_an_ordinary_pass(
    one: tuple[sih.DisentangledTransformer, Tensor], other: tuple[sih.Transformer, Tensor]
) -> None:
    for model, tokens in (one, other):
        torch.testing.assert_close(
            model.trace(tokens).output, model(tokens), rtol=1e-10, atol=1e-10
        )
