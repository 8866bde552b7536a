"""The faster way of computing attention is measured, kept, and never believed when damaged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import sih
from sih.models.fast import choice, compiled

pytestmark = pytest.mark.skipif(compiled.library() is None, reason="no C compiler on this machine")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(compiled, "cache_folder", lambda: tmp_path)
    choice.fastest.cache_clear()
    yield tmp_path
    choice.fastest.cache_clear()


def test_the_faster_way_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choice.measure()
    assert found.compiled == (found.seconds["compiled"] < found.seconds["torch"])
    assert all(0 < seconds < 5 for seconds in found.seconds.values())
    clock = iter(range(1000))  # each way is timed by two looks at the clock, in turn
    monkeypatch.setattr(time, "perf_counter", lambda: (n := next(clock)) + (n % 4 == 1) * 0.5)
    assert choice.measure() == choice.Choice(True, {"torch": 1.5, "compiled": 1.0})
    monkeypatch.setattr(time, "perf_counter", lambda: (n := next(clock)) + (n % 4 == 3) * 0.5)
    assert choice.measure() == choice.Choice(False, {"torch": 1.0, "compiled": 1.5})


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_it_is_measured_where_gradients_are_off(cache: Path, off: type) -> None:
    with off():
        assert choice.fastest().seconds.keys() == {"torch", "compiled"}


def test_the_choice_is_kept_and_a_damaged_one_made_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = choice.fastest()
    (kept,) = cache.iterdir()
    kept.write_text(json.dumps({"compiled": not first.compiled, "seconds": {}}))
    choice.fastest.cache_clear()
    assert choice.fastest().compiled is not first.compiled  # from the file, not measured
    for damaged in ("", "[]", "{}", '{"compiled": true, "seconds": 3}'):
        kept.write_text(damaged)
        choice.fastest.cache_clear()
        assert set(choice.fastest().seconds) == {"torch", "compiled"}


@pytest.mark.parametrize("faster", [True, False])
def test_a_model_takes_the_chosen_path(faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sih.models.standard.transformer.fastest", lambda: choice.Choice(faster, {})
    )
    model = sih.Transformer(num_states=3, length=20, dim=8, qk_dim=4, heads=(1, 2))
    tokens = torch.randint(3, (4, 20), generator=torch.Generator().manual_seed(1))
    assert model.usual_path() == ("compiled" if faster else "fused")
    assert torch.equal(model(tokens), model(tokens, path=model.usual_path()))
    assert model.double().usual_path() == "fused"
    with pytest.raises(ValueError, match=r"path 'compiled' is for float32 on a CPU .* use 'fused'"):
        model(tokens, path="compiled")
