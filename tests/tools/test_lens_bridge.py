"""Our models in TransformerLens, theirs in ours, and what `diagnose` says of one that was trained there."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import sih
from sih.models import Model
from sih.training.runs.run_store import RunStore

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs
EXAMPLES = Path(__file__).parents[2] / "examples" / "tools"
ATOL = {torch.float32: 1e-5, torch.float64: 1e-10}


@pytest.fixture(scope="module")
def lens() -> Any:
    pytest.importorskip(
        "transformer_lens", reason="TransformerLens is not installed (make test-tools)"
    )
    from transformer_lens.model_bridge import TransformerBridge

    return TransformerBridge


def _model(name: str, rng: torch.Generator) -> Model:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 3), length=24)
    dtype = torch.float64 if name.endswith("64") else torch.float32
    if name.startswith("trained"):
        return sih.load("standard-1.2.3").to(dtype)
    if name.startswith("MLPs"):
        return sih.Transformer(4, 24, 8, 12, (2, 1, 3), 10, activation="gelu", dtype=dtype, rng=rng)
    target = name.split()[0]
    return sih.construct(
        task, target=target, dtype=dtype, readout="logit" if target == "paper" else "probability"
    )


NAMES = [
    f"{name} {bits}"
    for name in ("trained", "MLPs", "paper", "two-lags", "bayes")
    for bits in (32, 64)
]


@pytest.mark.parametrize("name", NAMES)
def test_logits_and_patterns_are_ours(name: str, lens: Any, rng: torch.Generator) -> None:
    model = _model(name, rng)
    assert model.config.length is not None
    tokens = torch.randint(model.config.num_states, (4, model.config.length), generator=rng)
    bridge = sih.to_transformer_lens(model)
    with torch.no_grad():
        logits, cache = bridge.run_with_cache(tokens)
    standard = sih.to_standard(model) if isinstance(model, sih.DisentangledTransformer) else model
    run = standard.run(tokens)  # by the equations
    atol = ATOL[logits.dtype]
    assert logits.dtype == run.output.dtype
    torch.testing.assert_close(logits, run.output.detach(), atol=atol, rtol=0)
    for layer, attention in enumerate(run.attention):
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"]
        torch.testing.assert_close(
            pattern[:, : attention.shape[1]], attention.detach(), atol=atol, rtol=0
        )
        assert pattern.shape[1] == max(model.config.heads)
    back = sih.from_transformer_lens(bridge, readout=model.config.readout)
    assert back.config.heads == model.config.heads
    torch.testing.assert_close(back.run(tokens).output.detach(), logits, atol=atol, rtol=0)
    short = tokens[:, :7]
    torch.testing.assert_close(
        bridge(short).detach(), standard.run(short).output.detach(), atol=atol, rtol=0
    )


def test_every_shipped_standard_model(lens: Any, rng: torch.Generator) -> None:
    for name in RunStore().names():
        model = sih.load(name).to(torch.float64)  # in float32 rounding grows with a model's scores
        if isinstance(model, sih.Transformer):
            tokens = torch.randint(model.config.num_states, (2, model.config.length), generator=rng)
            found = sih.to_transformer_lens(model)(tokens).detach()
            torch.testing.assert_close(
                found, model.run(tokens).output.detach(), atol=ATOL[torch.float64], rtol=0
            )


def test_a_patched_pattern_does_there_what_it_does_here(lens: Any, rng: torch.Generator) -> None:
    model = _model("trained 64", rng)
    tokens = torch.randint(5, (3, 128), generator=rng)
    other = model.run(tokens.flip(0))["2.2/attention"].detach()

    def patch(pattern: Tensor, hook: Any) -> Tensor:
        pattern[:, 1] = other
        return pattern

    bridge = sih.to_transformer_lens(model)
    found = bridge.run_with_hooks(tokens, fwd_hooks=[("blocks.1.attn.hook_pattern", patch)])
    wanted = model.run(tokens, replace={"2.2/attention": other}).output
    torch.testing.assert_close(found.detach(), wanted.detach(), atol=1e-10, rtol=0)


def test_an_exported_folder_loads_there_with_their_tools_alone(
    lens: Any, tmp_path: Path, rng: torch.Generator
) -> None:
    from safetensors.torch import load_file

    from sih.cli import main

    assert (
        main(["export", "standard-1.2.3", "--to", "transformer-lens", "--out", str(tmp_path)]) == 0
    )
    config = json.loads((tmp_path / "config.json").read_text())
    bridge = lens.boot_native(config["transformer_lens"], dtype=getattr(torch, config["dtype"]))
    bridge.load_state_dict(load_file(tmp_path / "weights.safetensors"), strict=False)
    tokens = torch.randint(5, (3, 128), generator=rng)
    wanted = sih.load("standard-1.2.3").run(tokens).output
    torch.testing.assert_close(bridge(tokens).detach(), wanted.detach(), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def trained(lens: Any) -> tuple[sih.Task, Any]:
    """A model of theirs, with their biases, trained on the task for a moment."""
    task = sih.Task(
        [[0.9, 0.08, 0.02], [0.03, 0.07, 0.9], [0.05, 0.9, 0.05]], lags=(1, 2), length=24
    )
    sizes = {
        "d_model": 32,
        "d_head": 16,
        "n_heads": 2,
        "n_layers": 3,
        "d_mlp": 16,
        "n_ctx": 24,
        "d_vocab": 3,
    }
    bridge = lens.boot_native({**sizes, "normalization_type": None, "act_fn": "gelu", "seed": 0})
    steps, rng = torch.optim.Adam(bridge.parameters(), lr=5e-3), torch.Generator().manual_seed(0)
    for _ in range(100):
        tokens = sih.sample(task, 64, rng=rng).tokens
        loss = nn.functional.cross_entropy(
            bridge(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()
        )
        steps.zero_grad()
        loss.backward()
        steps.step()
    return task, bridge


def test_a_model_trained_there_is_diagnosed_and_comes_here(trained: tuple[sih.Task, Any]) -> None:
    task, bridge = trained
    batch = sih.sample(task, 64, rng=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits, cache = bridge.run_with_cache(batch.tokens)
    patterns = [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(3)]
    found = sih.diagnose(task, batch, attention=patterns, law=logits)
    assert len(found.heads) == 6
    assert found.kl["model"].high < found.kl["stationary"].low
    assert found.lag_accuracy["model"].low > 0.5
    assert "better than" in found.verdict
    assert "nan" not in repr(found)
    model = sih.from_transformer_lens(bridge)
    assert model.config.dim == 33  # their biases
    ours = sih.diagnose(task, batch, model=model)
    assert ours.kl["model"].mean == pytest.approx(found.kl["model"].mean, abs=1e-4)
    assert [head.role for head in ours.heads] == [head.role for head in found.heads]


def test_an_exported_circuit_is_known_for_what_it_is(lens: Any, rng: torch.Generator) -> None:
    """Also with the heads of zeros that fill its layers."""
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=24)
    batch = sih.sample(task, 8, rng=rng)
    _, cache = sih.to_transformer_lens(sih.construct(task)).run_with_cache(batch.tokens)
    patterns = [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(3)]
    found = sih.diagnose(task, batch, attention=patterns)
    assert [len(layer[0]) for layer in patterns] == [2, 2, 2]
    assert "is that of the circuit 'paper'" in found.verdict
    assert [head.role for head in found.heads if head.name in ("1.2", "3.2")] == [
        "attends uniformly"
    ] * 2


def test_what_does_not_fit_is_refused(lens: Any) -> None:
    sizes = {
        "d_model": 8,
        "d_head": 4,
        "n_heads": 2,
        "n_layers": 1,
        "n_ctx": 6,
        "d_vocab": 3,
        "act_fn": "relu",
    }
    with pytest.raises(ValueError, match="normalization_type"):
        sih.from_transformer_lens(lens.boot_native(sizes))


@pytest.mark.parametrize("script", ["transformer_lens_export", "circuitsvis_attention"])
def test_scripts_run(
    script: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"transformer_lens_export": "transformer_lens", "circuitsvis_attention": "circuitsvis"}[
        script
    ]
    pytest.importorskip(tool, reason=f"{tool} is not installed (make test-tools)")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{script}.py"))
    assert capsys.readouterr().out
