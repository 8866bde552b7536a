"""The transformer with relative positions: its definition by loops, its paths, its start token, what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import sih
from sih.base.errors import FieldError
from sih.models.fast import compiled
from sih.models.relative.relative_transformer import RelativeShape

CASES: list[dict[str, Any]] = [
    {"reach": 3},
    {"reach": 30},
    {"reach": 2, "heads": (2, 1), "start": True},
    {"reach": 3, "heads": (2, 3, 1), "offsets": ("both", "none", "keys")},
    {"reach": 1, "offsets": "keys", "start": True},
    {"reach": 4, "offsets": "none"},
    {"reach": 4, "offsets": "rotary"},
    {"reach": 4, "heads": (2, 2), "offsets": ("rotary", "both"), "start": True},
    {"reach": 5, "heads": (1,)},
]


def small(dtype: torch.dtype = torch.float64, **sizes: Any) -> sih.RelativeTransformer:
    return sih.RelativeTransformer(
        num_states=3, **{"dim": 6, "qk_dim": 4, "rng": 1, "dtype": dtype, **sizes}
    )


def tokens_of(time: int, batch: int = 3) -> Tensor:
    return torch.randint(3, (batch, time), generator=torch.Generator().manual_seed(time))


def by_loops(model: sih.RelativeTransformer, sequence: list[int]) -> Tensor:
    """The equations of the module's docstring, one query, key and head at a time, for one sequence."""
    config = model.config
    if config.start:
        sequence = [config.num_states, *sequence]
    h = [model.token[s] for s in sequence]
    for layer, word in zip(model.each_layer(), config.offsets, strict=True):
        new = list(h)
        for n in range(len(layer.Q)):
            q, k, v = ([x @ weights[n] for x in h] for weights in (layer.Q, layer.K, layer.V))
            assert (layer.aK is not None, layer.aV is not None) == (
                word in ("both", "keys"),
                word == "both",
            )
            for i in range(len(h)):
                scores, values = [], []
                for j in range(i + 1):
                    b = min(i - j, config.reach)
                    known = layer.aK is not None, layer.aV is not None
                    assert known == (word in ("both", "keys"), word == "both")
                    if word == "rotary":
                        scores.append(turned(q[i], i) @ turned(k[j], j))
                    else:
                        scores.append(
                            q[i] @ (k[j] + layer.aK[n, b] if layer.aK is not None else k[j])
                        )
                    values.append(v[j] + layer.aV[n, b] if layer.aV is not None else v[j])
                p = torch.softmax(torch.stack(scores) / config.temperature, dim=0)
                new[i] = new[i] + sum(
                    weight * value for weight, value in zip(p, values, strict=True)
                )
        h = new
    return torch.stack([model.readout @ x for x in h])[int(config.start) :]


def turned(x: Tensor, position: int) -> Tensor:
    """Each pair of coordinates, as a complex number, multiplied by e^(i angle)."""
    half = len(x) // 2
    out = x.clone()
    for n in range(half):
        angle = position * 10_000 ** (-2 * n / len(x))
        pair = torch.complex(x[n], x[n + half]) * torch.polar(
            *torch.tensor([1.0, angle], dtype=x.dtype)
        )
        out[n], out[n + half] = pair.real, pair.imag
    return out


@pytest.mark.parametrize("sizes", CASES)
@pytest.mark.parametrize("time", [1, 2, 5, 9])
def test_every_path_is_the_definition(sizes: dict[str, Any], time: int) -> None:
    model, tokens = small(**sizes), tokens_of(time)
    expected = torch.stack([by_loops(model, row.tolist()) for row in tokens])
    for path in ("fused", "plain"):
        torch.testing.assert_close(model(tokens, path=path), expected, rtol=0, atol=1e-12)


def test_any_length_and_no_length() -> None:
    model = small(reach=4)
    assert model.config.length is None
    tokens = tokens_of(200)
    whole = model.predict(tokens)
    torch.testing.assert_close(model.predict(tokens[:, :31]), whole[:, :31], rtol=0, atol=1e-12)


def test_offsets_beyond_the_reach_share_their_vectors() -> None:
    """With all vectors told apart and those from 3 on alike, a model is the one of reach 3."""
    near, far = small(reach=3), small(reach=9)
    with torch.no_grad():
        weights = dict(near.named_parameters())
        for name, weight in far.named_parameters():
            if name.endswith((".aK", ".aV")):
                weight[:, :4], weight[:, 4:] = weights[name], weights[name][:, 3:]
            else:
                weight.copy_(weights[name])
    tokens = tokens_of(12)
    torch.testing.assert_close(near(tokens), far(tokens), rtol=0, atol=1e-12)


def test_the_start_token_is_a_first_row_of_named_values() -> None:
    model, tokens = small(reach=3, start=True), tokens_of(6)
    trace = model.trace(tokens)
    assert (model.first, trace.first) == (1, 1)
    assert trace["token"].shape == (3, 7, 6)
    assert torch.equal(trace["token"][:, 0], model.token[3].detach().expand(3, -1))
    assert trace["2.1/attention"].shape == (3, 7, 7)
    assert trace["2.1/offset"].shape == trace["2.1/by_offset"].shape == (3, 7, 4)
    assert trace.output.shape == model.predict(tokens).shape == (3, 6, 3)
    assert trace.between_tokens[1].shape == (3, 1, 6, 6)
    parts = model.contributions(trace)
    torch.testing.assert_close(sum(parts.values()), trace.output, rtol=0, atol=1e-12)


def test_named_values_by_offset() -> None:
    model, tokens = small(reach=3, offsets=("both", "keys", "rotary")), tokens_of(8)
    trace = model.trace(tokens)
    a, u = trace["1.1/attention"], trace["1.1/offset"]
    for offset in range(3):
        torch.testing.assert_close(u[:, offset:, offset], a.diagonal(-offset, dim1=1, dim2=2))
    torch.testing.assert_close(u.sum(dim=-1), torch.ones_like(u[..., 0]))
    second = model.each_layer()[1]
    assert second.aK is not None
    torch.testing.assert_close(
        trace["2.1/by_offset"], trace["2.1/query"] @ second.Q[0] @ second.aK[0].T
    )
    hidden = {"2.1/offset", "3.1/offset", "3.1/by_offset"}
    assert not hidden & set(trace.names)
    moved = model.run(tokens, replace={"1.1/offset": 0.0}).output
    assert (moved - trace.output).abs().max() > 1e-3
    law = sih.ablate(model, tokens, "2.1/by_offset", how="zero")
    with torch.no_grad():
        second.aK.zero_()
        torch.testing.assert_close(law, model.predict(tokens))
    patched = sih.patch(model, tokens, tokens.flip(0), ["3.1/query"])
    assert patched.shape == law.shape


def test_hooks_see_the_values_by_offset() -> None:
    model, tokens = small(reach=3), tokens_of(5)
    seen: list[Tensor] = []

    def see(_module: object, _inputs: object, value: Tensor) -> Tensor:
        seen.append(value)
        return value * 0

    handle = model.hook_points()["1.1/offset"].register_forward_hook(see)
    changed = model(tokens)
    handle.remove()
    assert seen[0].shape == (3, 5, 4)
    torch.testing.assert_close(changed, model.run(tokens, replace={"1.1/offset": 0.0}).output)


@pytest.mark.parametrize("start", [False, True])
def test_direct_scores_are_those_of_a_stream_of_tokens_alone(start: bool) -> None:
    model = small(reach=3, start=start, offsets=("both", "none", "rotary"))
    scores = model.direct_scores("1.1")
    assert scores["token"].shape == (3 + start, 3 + start)
    assert scores["offset"].shape == (3 + start, 4)
    tokens = tokens_of(6)
    trace, named = model.trace(tokens), tokens.tolist()
    first = model.first
    for i, j in ((0, 0), (3, 1), (5, 0)):
        want = (
            scores["token"][named[0][i], named[0][j]] + scores["offset"][named[0][i], min(i - j, 3)]
        )
        torch.testing.assert_close(trace["1.1/scores"][0, i + first, j + first], want.detach())
    assert model.direct_scores("2.1").keys() == {"token"}
    assert model.direct_scores("3.1") == {}
    maps = model.direct_attention()["1.1"]
    torch.testing.assert_close(
        maps["offset"].sum(dim=-1), torch.ones(3 + start, dtype=torch.float64)
    )
    assert "offset" in {ax.get_xlabel() for ax in model.plot().axes}


def test_weights_at_the_start() -> None:
    model = sih.RelativeTransformer(5, reach=63, rng=3)
    drawn = dict(model.named_parameters())
    for name, weight in drawn.items():
        if name == "token" or name.endswith((".aK", ".aV")):
            assert weight.std().item() == pytest.approx(1, abs=0.15)
        else:
            assert weight.abs().max() <= 1 / 8
            assert weight.std().item() == pytest.approx(1 / 8 / math.sqrt(3), abs=0.01)
    assert (
        sum(weight.numel() for weight in drawn.values())
        == 43_648
        == model.count_weights(model.config)
    )
    normal = sih.RelativeTransformer(5, reach=63, init="normal", rng=3)
    assert dict(normal.named_parameters())["layers.1.aV"].std().item() == pytest.approx(
        1 / 8, abs=0.02
    )
    assert all(
        not weight.any()
        for weight in sih.RelativeTransformer(5, reach=3, init="zeros").parameters()
    )


@pytest.mark.parametrize("sizes", CASES)
def test_saved_and_loaded(sizes: dict[str, Any], tmp_path: Path) -> None:
    model = small(**sizes)
    assert sum(weight.numel() for weight in model.parameters()) == model.count_weights(model.config)
    sih.save(model, tmp_path / "model")
    again = sih.load(tmp_path / "model")
    assert again.config == model.config
    assert torch.equal(again(tokens_of(7)), model(tokens_of(7)))
    assert "length" not in json.loads((tmp_path / "model" / "config.json").read_text())
    assert "sih.load" in (tmp_path / "model" / "README.md").read_text()


def test_a_file_of_another_kind_or_with_a_length_is_refused(tmp_path: Path) -> None:
    for name, model in (
        ("relative", small(reach=3)),
        ("standard", sih.Transformer(3, 8, 6, 4, (1, 1, 1))),
    ):
        sih.save(model, tmp_path / name)
    path = tmp_path / "relative" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "length": 64}))
    with pytest.raises(ValueError, match="a relative model's entry 'length' is unknown"):
        sih.load(tmp_path / "relative")
    path.write_text((tmp_path / "standard" / "config.json").read_text())
    with pytest.raises(ValueError, match="asks for"):
        sih.load(tmp_path / "relative")
    path.write_text(json.dumps({**config, "offsets": ["both", "sideways", "both"]}))
    with pytest.raises(
        ValueError, match=r"offsets\.1 must be one of both, keys, none, rotary; got 'sideways'"
    ):
        sih.load(tmp_path / "relative")


@pytest.mark.parametrize("reach", [0, -1, True, 2**31])
def test_reach_is_a_whole_number(reach: Any) -> None:
    with pytest.raises(
        FieldError, match=r"reach must be a whole number(, at least 1| below 2\^31); got"
    ):
        sih.RelativeTransformer(5, reach)


def test_other_bad_sizes() -> None:
    with pytest.raises(
        FieldError, match=r"offsets\.0 must be one of both, keys, none, rotary; got 'values'"
    ):
        small(reach=3, offsets="values")
    with pytest.raises(FieldError, match="such a word for each of the 3 layers"):
        small(reach=3, offsets=("both", "keys"))
    with pytest.raises(FieldError, match="rotary turns pairs of coordinates"):
        small(reach=3, qk_dim=3, offsets="rotary")
    with pytest.raises(FieldError, match="tokens must be states 0 to 2"):
        small(reach=3, start=True).predict(torch.tensor([[0, 3]]))
    with pytest.raises(FieldError, match="with time at least 1; got"):
        small(reach=3).predict(torch.zeros(2, 0, dtype=torch.int64))


def test_a_call_that_does_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIH_MEMORY_GB", "0.001")
    model = small(reach=3)
    model.predict(tokens_of(20))
    with pytest.raises(ValueError, match="the attention of 3 sequences of 400 tokens would take"):
        model.predict(tokens_of(400))


@pytest.mark.skipif(compiled.library() is None, reason="no C compiler on this machine")
def test_a_gradient_in_c_that_does_not_fit_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its two maps of rows and keys are made after the call, in C: two of 1,000 rows have 8 MB."""
    monkeypatch.setenv("SIH_MEMORY_GB", "0.004")
    model, tokens = small(dtype=torch.float32, reach=3), tokens_of(1000, batch=1)
    with torch.no_grad():
        model(tokens, path="compiled")
    with pytest.raises(ValueError, match="the attention of 1 sequences of 1,000 tokens would take"):
        model(tokens, path="compiled")


def test_a_shape_resolves_its_reach_by_the_length() -> None:
    assert RelativeShape().build(5, 64).config.reach == 63  # type: ignore[attr-defined]
    assert RelativeShape(start=True).build(5, 64).config.reach == 64  # type: ignore[attr-defined]
    assert RelativeShape(reach=7).build(5, 64).config.reach == 7  # type: ignore[attr-defined]
    assert RelativeShape(offsets=("keys", "keys", "keys")) == RelativeShape(offsets=("keys",))
