from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.views import RUNS

import sih
from sih.base.errors import FieldError
from sih.explorer.circuit_choice import (
    UnfittedError,
    fit_of,
    relative_model,
    resolve,
    too_large_to_fit,
    written_blocks,
)
from sih.explorer.parse_state import read_state
from sih.explorer.view import make_view
from sih.heads import two_sided
from sih.models.disentangled import written


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def chosen(value: dict[str, Any]) -> tuple[Any, Any]:
    state = read_state(value)
    return state.models[0], state.task()


def test_a_circuit_is_chosen_and_written_once() -> None:
    choice, task = chosen({"length": 30, "models": [{"kind": "bayes"}]})
    _, again = chosen({"length": 30, "models": [{"kind": "bayes"}]})
    assert resolve("models.0", choice, task) is resolve("models.0", choice, again)
    assert written_blocks("models.0", choice, task) is written_blocks("models.0", choice, again)
    _, other = chosen({"length": 30, "matrix": {"seed": 1}})
    assert resolve("models.0", choice, other) is not resolve("models.0", choice, task)


def test_a_view_does_not_fit_but_says_that_it_has_to_be(empty_cache: Path) -> None:
    state = read_state({"length": 18, "models": [{}, {"kind": "both"}]})
    with pytest.raises(UnfittedError, match="not fitted yet") as found:
        make_view(state, RUNS)
    assert found.value.field == "models.1.heads"
    assert list(empty_cache.iterdir()) == []
    needed = fit_of("models.1", state.models[1], state.task())
    assert needed == ((1, 2, 3), 18, 1)
    two_sided(*needed)
    assert fit_of("models.1", state.models[1], state.task()) is None
    view = make_view(state, RUNS)
    profile = two_sided(*needed)
    assert (
        torch.from_numpy(view.arrays["mixed/1/residual"]).double().sub(profile.residual).abs().max()
        < 1e-6
    )


def test_what_needs_no_fit_is_there_at_once(empty_cache: Path) -> None:
    for heads in (2, 3):
        choice, task = chosen({"length": 19, "models": [{"kind": "both", "heads": heads}]})
        assert fit_of("models.0", choice, task) is None
        assert resolve("models.0", choice, task).heads == heads


@pytest.mark.parametrize(("lags", "length", "most"), [(7, 128, 6), (5, 256, 4), (16, 256, 4)])
def test_what_is_too_large_to_fit_is_one_clear_line(
    empty_cache: Path, lags: int, length: int, most: int
) -> None:
    value = {"lags": list(range(1, lags + 1)), "length": length, "models": [{"kind": "both"}]}
    with pytest.raises(
        FieldError, match=f"{most} lags are the most that the page fits at length {length}"
    ) as found:
        resolve("models.0", *chosen(value))
    assert not isinstance(found.value, UnfittedError)
    assert found.value.field == "models.0.heads"
    assert "\n" not in str(found.value)
    assert too_large_to_fit(tuple(range(1, most + 1)), length) is None


@pytest.mark.parametrize(
    "model",
    [
        {"kind": "bayes"},
        {"kind": "bayes", "heads": 3},
        {"kind": "bayes", "heads": 1},
        {"kind": "both"},
        {"kind": "looking"},
    ],
    ids=str,
)
def test_the_page_runs_the_weights_of_construct(model: dict[str, Any]) -> None:
    """Blocks written alone, the constructed model's written blocks and its dense equations are one circuit."""
    choice, task = chosen({"length": 20, "models": [model]})
    built = sih.construct(task, **choice.options())
    tokens = sih.sample(task, 3, rng=5).tokens
    trace = written.run(written_blocks("models.0", choice, task), tokens)
    assert resolve("models.0", choice, task) == built.circuit
    for other in (
        built.trace(tokens, path="written"),
        built.run(tokens),
    ):  # blocks are added in another order
        for mine, theirs in zip(trace.attention, other.attention, strict=True):
            assert (mine - theirs).abs().max() < 1e-6
        assert (trace.output - other.output).abs().max() < 1e-6


@pytest.mark.parametrize("kind", ["relative", "relative-bayes"])
def test_a_circuit_with_relative_positions_is_built_once_for_each_task(kind: str) -> None:
    choice, task = chosen({"length": 5, "lags": [1, 2, 4], "models": [{"kind": kind}]})
    model = relative_model("models.0", choice, task)
    assert model is relative_model("models.0", choice, task)
    built = sih.construct(task, **choice.options())
    assert resolve("models.0", choice, task) == built.circuit
    for mine, theirs in zip(model.parameters(), built.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    with pytest.raises(FieldError, match="has no option 'looking'") as found:
        resolve("models.0", replace(choice, looking=1.0), task)
    assert found.value.field == "models.0.looking"
    with pytest.raises(FieldError, match="too small") as found:
        resolve("models.1", replace(choice, lam=1.0), task)
    assert found.value.field == "models.1.lam"


def test_errors_name_the_slider_or_the_model() -> None:
    for value, field in (({"kind": "two-lags"}, "models.0"), ({"lam": 1.0}, "models.0.lam")):
        with pytest.raises(FieldError) as found:
            resolve("models.0", *chosen({"models": [value]}))
        assert found.value.field == field
