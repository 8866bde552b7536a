"""nnsight, pyvene and TransformerLens read and change every named value, as `run(replace=...)` does."""

from __future__ import annotations

import importlib.util
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sih
from sih.models import Model

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

EXAMPLES = Path(__file__).parents[2] / "examples" / "tools"
TOKENS = torch.tensor([[0, 1, 2, 2, 1, 0], [2, 0, 0, 1, 2, 1]])
OTHERS = torch.tensor([[1, 1, 0, 2, 0, 0], [0, 2, 1, 1, 2, 2]])


def halved(value: Tensor) -> Tensor:
    return value * 0.5


def module_name(name: str) -> str:
    return name if "/" in name else f"/{name}"


@pytest.fixture(params=["disentangled", "standard", "standard with MLPs"])
def model(request: pytest.FixtureRequest, rng: torch.Generator) -> Model:
    if request.param == "disentangled":
        return sih.DisentangledTransformer(
            3, 6, heads=(1, 2, 1), temperature=1.0, dtype=torch.float64, rng=rng
        )
    mlp_dim = 5 if "MLP" in request.param else None
    return sih.Transformer(3, 6, 4, 3, (1, 2, 1), mlp_dim, dtype=torch.float64, rng=rng)


def test_nnsight(model: Model) -> None:
    nnsight = pytest.importorskip("nnsight", reason="nnsight is not installed (make test-tools)")
    trace = model.run(TOKENS)
    wanted = {name: model.run(TOKENS, replace={name: halved}).output for name in trace.names}
    zeroed = {name: model.run(TOKENS, replace={name: 0.0}).output for name in trace.names}
    seen = nnsight.NNsight(model)
    for name in trace.names:
        with seen.trace(TOKENS):
            value = seen.get(module_name(name)).output.save()
        assert torch.equal(value, trace[name]), name
        with seen.trace(TOKENS):
            seen.get(module_name(name)).output = seen.get(module_name(name)).output * 0.5
            output = seen.output.save()
        assert torch.equal(output, wanted[name]), name
        with seen.trace(TOKENS):
            seen.get(module_name(name)).output[:] = 0
            output = seen.output.save()
        assert torch.equal(output, zeroed[name]), name
    run = model.run(TOKENS)
    (slope,) = torch.autograd.grad(run.output.pow(2).sum(), run["2.1/attention"])
    with seen.trace(TOKENS):
        attention = seen.get("2.1/attention").output
        attention.requires_grad_(True)
        with seen.output.pow(2).sum().backward():
            found = attention.grad.save()
    torch.testing.assert_close(found, slope, rtol=0, atol=1e-12)


def test_pyvene(model: Model) -> None:
    pyvene = pytest.importorskip("pyvene", reason="pyvene is not installed (make test-tools)")
    trace, other = model.run(TOKENS), model.run(OTHERS)
    where = [[list(range(6))] * 2]
    for name in trace.names:
        component = f"{module_name(name)}.output"
        intervenable = pyvene.IntervenableModel(
            {"component": component, "intervention": lambda base, _source: base * 0.5}, model
        )
        _, output = intervenable(base={"tokens": TOKENS}, unit_locations=None)
        assert torch.equal(output, model.run(TOKENS, replace={name: halved}).output), name
        exchange = pyvene.VanillaIntervention(embed_dim=trace[name].shape[-1])
        intervenable = pyvene.IntervenableModel(
            {"component": component, "intervention": exchange}, model
        )
        locations = {"sources->base": (where, where)}
        _, output = intervenable(
            {"tokens": TOKENS}, sources=[{"tokens": OTHERS}], unit_locations=locations
        )
        assert torch.equal(output, model.run(TOKENS, replace={name: other[name]}).output), name
    with pytest.raises(ValueError, match="nothing passes through '2'"):
        pyvene.IntervenableModel(
            {"component": "2.output", "intervention": lambda base, _source: base}, model
        )({"tokens": TOKENS}, unit_locations=None)


def test_transformer_lens(model: Model) -> None:
    lens = pytest.importorskip(
        "transformer_lens", reason="TransformerLens is not installed (make test-tools)"
    )
    from transformer_lens.hook_points import HookPoint

    class Hooked(lens.HookedRootModule):  # type: ignore[name-defined,misc]
        def __init__(self, model: Model) -> None:
            super().__init__()
            self.model = model
            for name in model.hook_points():
                model.set_submodule(module_name(name), HookPoint())
            self.setup()

        def forward(self, tokens: Tensor) -> Any:
            return self.model(tokens)

    trace = model.run(TOKENS)
    hooked = Hooked(model)
    _, cache = hooked.run_with_cache(TOKENS)
    for name in trace.names:
        key = f"model.{module_name(name)}"
        assert torch.equal(cache[key], trace[name]), name
        output = hooked.run_with_hooks(TOKENS, fwd_hooks=[(key, lambda value, hook: halved(value))])
        assert torch.equal(output, model.run(TOKENS, replace={name: halved}).output), name


@pytest.mark.parametrize("tool", ["nnsight", "pyvene", "transformer_lens"])
def test_examples_run(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed (make test-tools)")
    runpy.run_path(str(EXAMPLES / f"{tool}_hooks.py"))
    assert "KL" in capsys.readouterr().out
