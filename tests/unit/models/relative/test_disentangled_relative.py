"""The disentangled transformer with relative positions: its definition by loops, its paths, what it refuses."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sih
from sih.base.errors import FieldError
from sih.models.fast import compiled
from sih.models.relative.disentangled_relative import DisentangledRelativeShape

CASES: list[dict[str, Any]] = [
    {"reach": 3},
    {"reach": 40},
    {"reach": 1, "heads": (2, 1)},
    {"reach": 2, "heads": (1, 3, 2), "temperature": 0.5},
    {"reach": 4, "heads": (2,), "readout": "probability"},
]
needs_compiler = pytest.mark.skipif(compiled.library() is None, reason="no C compiler here")


def small(dtype: torch.dtype = torch.float64, **sizes: Any) -> sih.DisentangledRelativeTransformer:
    return sih.DisentangledRelativeTransformer(
        num_states=3, **{"rng": 1, "temperature": 1.0, "dtype": dtype, **sizes}
    )


def tokens_of(time: int, batch: int = 3) -> Tensor:
    return torch.randint(3, (batch, time), generator=torch.Generator().manual_seed(time))


def by_loops(model: sih.DisentangledRelativeTransformer, sequence: list[int]) -> list[list[float]]:
    """The definition in Python's lists, one query, key and head at a time: matrices by rows, no names of blocks."""
    S, R = model.config.num_states, model.config.reach
    h = [[float(s == state) for state in range(S + 1)] for s in [S, *sequence]]
    for heads in model.A:
        new = [list(row) for row in h]
        for A in heads.tolist():
            for i, query in enumerate(h):
                read = [
                    sum(q * row[n] for q, row in zip(query, A, strict=True))
                    for n in range(len(A[0]))
                ]
                keys = [
                    [*h[j], *(float(min(i - j, R) == o) for o in range(R + 1))]
                    for j in range(i + 1)
                ]
                scores = [sum(a * b for a, b in zip(read, key, strict=True)) for key in keys]
                powers = [math.exp((s - max(scores)) / model.config.temperature) for s in scores]
                new[i] += [
                    sum(p * key[n] for p, key in zip(powers, keys, strict=True)) / sum(powers)
                    for n in range(len(keys[0]))
                ]
        h = new
    W = model.readout.tolist()
    return [[sum(w * x for w, x in zip(row, h_i, strict=True)) for row in W] for h_i in h[1:]]


@pytest.mark.parametrize("sizes", CASES)
def test_it_is_its_definition(sizes: dict[str, Any]) -> None:
    model, tokens = small(**sizes), tokens_of(9)
    wanted = torch.tensor([by_loops(model, row) for row in tokens.tolist()], dtype=torch.float64)
    for path in ("plain", "fused"):
        assert (model(tokens, path=path) - wanted).abs().max() < 1e-13


@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("path", ["fused", pytest.param("compiled", marks=needs_compiler)])
def test_paths_and_their_derivatives_agree(sizes: dict[str, Any], path: str) -> None:
    dtype, near = (torch.float64, 1e-12) if path == "fused" else (torch.float32, 2e-5)
    model, tokens, found = small(dtype, **sizes), tokens_of(70), []
    gradients = partial(
        torch.autograd.grad, inputs=list(model.parameters()), materialize_grads=True
    )
    for way in (path, "plain"):
        output = model(tokens, path=way)
        found.append((output, *gradients((output[:, :-1] ** 2).sum() / 70)))
    for x, y in zip(*found, strict=True):
        assert (x - y).abs().max() <= near * max(1.0, y.abs().max().item())


def test_named_values_are_blocks() -> None:
    model, tokens = small(reach=3, heads=(1, 2, 1)), tokens_of(8)
    trace = model.trace(tokens)
    assert (model.first, trace.first) == (1, 1)
    assert torch.equal(trace["token"][:, 0], torch.tensor([0.0, 0, 0, 1]).double().expand(3, -1))
    a, u = trace["1.1/attention"], trace["1.1/offset"]
    assert a.shape == (3, 9, 9)
    for offset in range(3):
        torch.testing.assert_close(u[:, offset:, offset], a.diagonal(-offset, dim1=1, dim2=2))
    torch.testing.assert_close(u.sum(dim=-1), torch.ones_like(u[..., 0]))
    second = trace["2.2/attention"]
    torch.testing.assert_close(trace["2.2/1.1/offset"], second @ u)
    for layers in range(4):
        stream = trace[f"{layers}/stream"]
        assert stream.shape[-1] == model.stream(layers).dim
        for name in model.writers(layers):
            assert torch.equal(stream[..., model.columns(name, layers)], trace.stream(name))
    whole = trace["2/stream"][..., model.columns("2.1/output", 2)]
    assert torch.equal(whole, trace["2.1/output"])
    assert torch.equal(trace["2/stream"][..., model.columns("0/stream", 2)], trace["token"])


def test_scores_are_those_of_a_pass() -> None:
    model, tokens = small(reach=3, heads=(1, 2)), tokens_of(9)
    trace = model.trace(tokens)
    h = trace["1/stream"][0]
    for offset in (0, 2, 3, 6):
        found = model.scores("2.2", h, h, offset)
        wanted = trace["2.2/scores"][0]
        torch.testing.assert_close(found.diagonal(-offset), wanted.diagonal(-offset))
    tables = model.direct_scores("1.1")
    want = tables["token"][tokens[0, 5], tokens[0, 1]] + tables["offset"][tokens[0, 5], 3]
    torch.testing.assert_close(trace["1.1/scores"][0, 6, 2], want)
    assert "offset" in {ax.get_xlabel() for ax in model.plot().axes}


def test_values_are_replaced_and_hooked() -> None:
    model, tokens = small(reach=3), tokens_of(8)
    output = model(tokens)
    moved = model.run(tokens, replace={"2.1/1.1/offset": 0.0}).output
    assert (moved - output).abs().max() > 1e-4
    point = model.hook_points()["2.1/1.1/offset"]
    handle = point.register_forward_hook(lambda *_: torch.zeros(3, 9, 4).double())
    torch.testing.assert_close(model(tokens), moved)
    handle.remove()
    zeroed = sih.ablate(model, tokens, "1.1/output", how="zero")
    torch.testing.assert_close(
        zeroed, model.law(model.run(tokens, replace={"1.1/output": 0.0}).output)
    )
    whole = [f"3.1/{use}" for use in ("query", "key", "value")]
    other = tokens.flip(0)
    patched = sih.patch(model, tokens, other, ["0/stream"])
    torch.testing.assert_close(patched, model.predict(other))
    assert sih.patch(model, tokens, other, whole).shape == patched.shape


@pytest.mark.parametrize("sizes", CASES)
def test_saved_and_loaded(sizes: dict[str, Any], tmp_path: Path) -> None:
    model = small(**sizes)
    assert sum(weight.numel() for weight in model.parameters()) == model.count_weights(model.config)
    sih.save(model, tmp_path / "model")
    again = sih.load(tmp_path / "model")
    assert again.config == model.config
    assert torch.equal(again(tokens_of(300)), model(tokens_of(300)))
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    assert "length" not in config
    path.write_text(json.dumps({**config, "length": 64}))
    with pytest.raises(ValueError, match="a relative-disentangled model's entry 'length' is unk"):
        sih.load(tmp_path / "model")


def test_it_is_diagnosed_and_trained(task: sih.Task) -> None:
    model = DisentangledRelativeShape().build(5, 32, init="uniform", rng=0)
    assert model.config.reach == 32  # type: ignore[attr-defined]
    batch = sih.sample(task, 8, rng=0)
    found = sih.diagnose(task, batch.tokens, model=model)
    assert "1.1" in str(found)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(8):
        loss = sih.next_token_loss(model, batch.tokens)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.02


def test_what_is_refused() -> None:
    with pytest.raises(FieldError, match="reach must be a whole number, at least 1; got 0"):
        small(reach=0)
    with pytest.raises(FieldError, match="tokens must be states 0 to 2"):
        small(reach=3).predict(torch.tensor([[0, 3]]))
    with pytest.raises(ValueError, match="there is no block 'offset' here"):
        small(reach=3).block("1.1", "offset", "token")
    with pytest.raises(ValueError, match=r"there is no head '4\.1'"):
        small(reach=3).block("4.1", "token", "token")


def test_a_call_that_does_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIH_MEMORY_GB", "0.001")
    model = small(reach=3)
    model.predict(tokens_of(20))
    with pytest.raises(ValueError, match="the attention of 3 sequences of 401 tokens would take"):
        model.predict(tokens_of(400))
