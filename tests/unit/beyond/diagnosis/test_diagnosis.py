from __future__ import annotations

import html
import math
import re
from typing import Any

import pytest
import torch
from support.pictures import picture
from torch import Tensor, nn

import sih
from sih.beyond.diagnosis.diagnosis import diagnose
from sih.beyond.diagnosis.diagnosis_figure import draw_diagnosis


class _Plain(nn.Module):
    """One's own model: two layers of torch's attention, no names or shapes of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.position = nn.Embedding(3, 32), nn.Embedding(24, 32)
        self.layers = nn.ModuleList(
            [nn.MultiheadAttention(32, heads, batch_first=True) for heads in (4, 2)]
        )
        self.readout = nn.Linear(32, 3)
        self.attention: list[Tensor] = []

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        later = torch.ones(tokens.shape[1], tokens.shape[1]).triu(1) > 0
        self.attention = []
        for layer in self.layers:
            added, weights = layer(h, h, h, attn_mask=later, average_attn_weights=False)
            self.attention.append(weights)
            h = h + added
        law: Tensor = self.readout(h)
        return law


@pytest.fixture(scope="module")
def trained() -> tuple[sih.Task, _Plain]:
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    task = sih.Task(
        [[0.9, 0.08, 0.02], [0.03, 0.07, 0.9], [0.05, 0.9, 0.05]], lags=(1, 2), length=24
    )
    model = _Plain()
    steps = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        tokens = sih.sample(task, 32, rng=rng).tokens
        loss = nn.functional.cross_entropy(
            model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        )
        steps.zero_grad()
        loss.backward()
        steps.step()
    return task, model


def test_a_plain_module_trained_on_the_task(trained: tuple[sih.Task, _Plain]) -> None:
    task, model = trained
    batch = sih.sample(task, 64, rng=torch.Generator().manual_seed(1))
    logits = model(batch.tokens)
    found = diagnose(task, batch, attention=model.attention, law=logits)
    assert [head.name for head in found.heads] == ["1.1", "1.2", "1.3", "1.4", "2.1", "2.2"]
    assert found.kl["model"].high < found.kl["stationary"].low
    assert found.kl["model"].mean == pytest.approx(
        sih.kl_to_truth(torch.softmax(logits, -1), batch, task)[:, 2:-1].mean().item()
    )
    assert found.lag_accuracy["model"].low > 0.5
    assert "logits" in found.notes[-1]
    assert "they have 3 layers, this model 2" in found.notes[0]
    assert "better than the stationary distribution" in found.verdict
    alone = diagnose(task, batch, model=model)
    assert alone.kl == found.kl
    assert alone.heads == ()


@pytest.mark.parametrize(
    "options", [{"target": "paper"}, {"target": "bayes", "heads": 3, "symmetric": False}]
)
def test_circuits_are_named(options: dict[str, Any], task: sih.Task, rng: torch.Generator) -> None:
    batch, target = sih.sample(task, 32, rng=rng), options["target"]
    found = diagnose(task, batch, model=sih.construct(task, **options))
    assert f"is that of the circuit '{target}'" in found.verdict
    first, *second, third = found.heads
    assert first.role == "compares with parents (+)"
    assert [head.role for head in second] == [f"periodic: offsets {r} mod 3" for r in range(3)]
    assert third.role == "selects the true candidate"
    assert [head.last for head in found.heads] == [False] * 4 + [True]
    assert first.correlation > (0.9 if target == "bayes" else 1 - 1e-9)
    assert sum(first.parents.values()) == pytest.approx(1)
    assert sum(third.copies.values()) == pytest.approx(1)
    assert ("Predicts like BMA" in found.verdict) == (target == "bayes")


def test_shipped_models_are_not_taken_for_the_construction() -> None:
    """The disentangled model's second layer votes by where it looks: another mechanism than the construction's."""
    run = sih.open_run("disentangled-1.2.3")
    found = diagnose(
        run.task, sih.sample(run.task, 32, rng=torch.Generator().manual_seed(3)), model=run.model
    )
    assert "resembles the circuit 'paper' in layers 1 and 3, not in layer 2" in found.verdict
    assert found.heads[0].role == "compares with parents (+)"
    assert found.heads[-1].role == "selects the true candidate"
    assert all(head.dependence > 0.15 for head in found.heads[1:4])


def test_tokens_alone_are_judged_by_bma(task: sih.Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 16, rng=rng)
    law = sih.selective(batch.tokens, task)
    known, blind = diagnose(task, batch, law=law), diagnose(task, batch.tokens, law=law)
    assert blind.reference == "BMA"
    assert blind.kl["bma"].mean == 0
    assert blind.kl["model"].mean == pytest.approx(known.law.to_bma["model"].mean)
    assert blind.verdict == known.verdict


def test_layers_may_be_lists_of_heads_and_numpy_arrays(
    task: sih.Task, rng: torch.Generator
) -> None:
    batch = sih.sample(task, 8, rng=rng)
    model = sih.construct(task)
    layers = model.trace(batch.tokens).attention[:2]
    whole = diagnose(task, batch, attention=layers)
    parts = diagnose(task, batch, attention=[list(layer.unbind(dim=1)) for layer in layers])
    arrays = diagnose(
        task, batch, attention=[layer.numpy() for layer in layers], law=model(batch.tokens).numpy()
    )
    assert parts == whole
    assert arrays.heads == whole.heads
    assert whole.kl == {}


def test_it_prints_shows_and_draws_itself(task: sih.Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 8, rng=rng)
    found = diagnose(task, batch, model=sih.construct(task))
    lines = repr(found).splitlines()
    assert lines[0].split()[:2] == ["head", "parents"]
    assert [line.split()[0] for line in lines[1:6]] == ["1.1", "2.1", "2.2", "2.3", "3.1"]
    assert lines[-1] == f"verdict: {found.verdict}"
    assert "nan" not in repr(found)
    shown = found._repr_html_()
    assert html.escape(found.verdict) in shown
    assert "<img" in shown
    assert picture(found.plot()) == picture(draw_diagnosis(found))
    law_only, heads_only = (
        diagnose(task, batch, law=sih.bma(batch.tokens, task)),
        diagnose(task, batch, attention=sih.construct(task).trace(batch.tokens).attention[:1]),
    )
    assert len(law_only.plot().axes) == len(heads_only.plot().axes) == 1
    assert not re.search("head  ", repr(law_only))
    assert (law_only.notes, heads_only.notes) == (
        (),
        ("not compared with the known circuits: they have 3 layers, this model 1",),
    )
    assert (
        f"nearest circuit: {min(found.circuits, key=lambda one: one.distance).circuit}, total variation"
        in repr(found)
    )


def test_wrong_input_is_refused_in_one_line(task: sih.Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 4, rng=rng)
    model = sih.construct(task)
    trace = model.trace(batch.tokens)
    negative = trace.attention[0].clone()
    negative[:, :, 5, :2] = torch.tensor([-0.5, 1.5])  # sums to 1 all the same
    negative[:, :, 5, 2:] = 0
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (batch, {}, "nothing to diagnose"),
        (batch, {"model": model, "law": trace.output}, "not both"),
        (batch, {"attention": trace.scores}, "after the softmax"),
        (batch, {"attention": [negative]}, "after the softmax"),
        (
            batch,
            {"attention": [trace.attention[0][:2]]},
            r"must be of shape \(batch, head, query, key\)",
        ),
        (
            batch,
            {"attention": [trace.attention[0][..., :9]]},
            r"must be of shape \(batch, head, query, key\)",
        ),
        (batch, {"attention": [trace.attention[0][:, 0]]}, "shape"),
        (batch, {"attention": [trace.attention[0].flip(-1)]}, "causal"),
        (batch, {"attention": [trace.attention[0] * torch.nan]}, "after the softmax"),
        (batch, {"attention": "one"}, "a list with a tensor for each layer"),
        (batch, {"attention": [None]}, "real numbers"),
        (
            batch,
            {"attention": [[trace.attention[0][:, 0], trace.attention[0][:2, 0]]]},
            "each head of",
        ),
        (batch, {"attention": [[]]}, "no heads"),
        (batch, {"law": "softmax"}, "real numbers"),
        (batch, {"law": trace.output.to(torch.complex64)}, "real numbers"),
        (batch, {"law": trace.output * math.nan}, "finite numbers"),
        (batch.tokens[:1], {"model": model}, "2 sequences"),
        (
            batch.tokens[:, : task.max_lag + 1],
            {"model": model},
            f"{task.max_lag + 2} tokens or more",
        ),
        (batch.tokens.float(), {"model": model}, "whole numbers"),
        (batch.tokens + 7, {"model": model}, "states 0 to 4"),
    ]
    for tokens, options, what in cases:
        with pytest.raises(ValueError, match=what) as error:
            diagnose(task, tokens, **options)
        assert "\n" not in str(error.value)


def test_short_sequences_are_compared_with_no_circuit(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=(2, 5), length=7)
    batch = sih.sample(task, 3, rng=rng)
    found = diagnose(task, batch, model=sih.Transformer(4, 7, 6, 4, (1, 2, 1), rng=rng))
    assert "nan" not in repr(found)
    assert {each.circuit for each in found.circuits} == {
        "bayes",
        "looking",
        "paper, sink",
        "paper, summed",
    }
    found.plot()


def test_attention_in_whole_numbers_is_welcome(task: sih.Task, rng: torch.Generator) -> None:
    """A hard head may be given as ones and zeros."""
    before = (torch.arange(32)[:, None] - torch.arange(32) == 1).long()
    before[0, 0] = 1
    found = diagnose(task, sih.sample(task, 4, rng=rng), attention=[before.expand(4, 1, 32, 32)])
    assert found.heads[0].role == "attends to offset 1"


def test_half_precision_is_welcome(task: sih.Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 4, rng=rng)
    run = sih.construct(task, dtype=torch.float32).trace(batch.tokens)
    for dtype in (torch.float16, torch.bfloat16):
        layers = [layer.to(dtype) for layer in run.attention[:1]]
        found = diagnose(task, batch, attention=layers, law=run.output.to(dtype))
        assert found.heads[0].role == "compares with parents (+)"


def test_a_single_lag_has_nothing_to_select(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(2,), length=20)
    batch = sih.sample(task, 8, rng=rng)
    model = sih.Transformer(num_states=3, length=20, dim=8, qk_dim=4, heads=(1, 2), rng=rng)
    found = diagnose(task, batch, model=model)
    assert "nan" not in repr(found)
    assert all("selects" not in head.role for head in found.heads)
