from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.views import RUNS, TRAINED, view_of

import sih
from sih.checks import FieldError
from sih.explorer.parse_state import read_state
from sih.explorer.view import make_view


def test_the_references_are_the_librarys() -> None:
    value = {"length": 40, "lags": [1, 3], "models": [{"beta": 7.0, "temper": 0.5, "evidence": "sum"}]}
    view, task = view_of(value), read_state(value).task()
    tokens = torch.from_numpy(view.arrays["tokens"].astype(np.int64))[None]
    batch = sih.Batch(tokens, torch.tensor([view.header["lag"]]))
    laws = {"truth": sih.known_lag(tokens, batch.lags, task), "bma": sih.bma(tokens, task)}
    laws["ml"] = sih.maximum_likelihood(tokens, task)
    for name, law in laws.items():
        assert np.abs(view.arrays[f"law/{name}"] - law[0].numpy()).max() < 1e-6
    for name in ("bma", "ml"):
        assert np.abs(view.arrays[f"kl/{name}"] - sih.kl_to_truth(laws[name], batch, task)[0].numpy()).max() < 1e-5
    estimator = sih.selective_weights(tokens, task, beta=7.0, temper=0.5, evidence="sum")
    assert np.abs(np.exp(view.arrays["log_weights/selective"]) - estimator[0].numpy()).max() < 1e-6


def test_an_edit_changes_its_token_and_nothing_before_it() -> None:
    before, after = view_of({"length": 40}), view_of({"length": 40, "edits": [[25, 0]], "seed": 19})
    changed = int(before.arrays["tokens"][25] == 0)
    after = view_of({"length": 40, "edits": [[25, changed]]})
    assert np.flatnonzero(before.arrays["tokens"] != after.arrays["tokens"]).tolist() == [25]
    for name in ("law/0", "law/bma", "log_weights/0", "log_weights/posterior"):
        assert np.array_equal(before.arrays[name][:25], after.arrays[name][:25]), name
        assert not np.array_equal(before.arrays[name][25:], after.arrays[name][25:]), name


def test_parts_of_a_trained_model_add_up_to_its_output() -> None:
    view = view_of(TRAINED)
    total = sum(array for name, array in view.arrays.items() if name.startswith("part/0/"))
    law = np.exp(total) / np.exp(total).sum(axis=-1, keepdims=True)
    assert np.abs(law - view.arrays["law/0"]).max() < 1e-5
    names = [name for name in view.arrays if name.startswith("part/0/")]
    assert names[:3] == ["part/0/token", "part/0/position", "part/0/1.1/output"]


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        ({"lags": [1, 3], "models": [{"kind": "mask"}]}, "models.0", "use 'position'"),
        ({"models": [{}, {"kind": "two-lags"}]}, "models.1", "two lags"),
        ({"models": [{"lam": 1.0}]}, "models.0.lam", "too small"),
        ({"length": 5}, "models.0", "too short"),
        ({"models": [{"kind": "trained", "name": "../../etc/passwd"}]}, "models.0", "no trained model"),
        ({"models": [{"kind": "trained", "name": "standard-1.3"}]}, "models.0", "trained for the lags 1 3"),
        ({"models": [{"kind": "trained", "name": "standard-1.2.3"}], "length": 129}, "models.0", "up to 128 tokens"),
        ({"matrix": {"seed": 1}, "models": [{"kind": "trained", "name": "standard-1.2.3"}]}, "models.0", "its own"),
    ],
)
def test_what_does_not_fit_is_explained_at_its_control(value: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(FieldError, match=words) as found:
        make_view(read_state(value), RUNS)
    assert found.value.field == field


def test_an_edit_that_no_lag_allows_is_explained() -> None:
    value = {"length": 20, "matrix": {"kind": "rows", "rows": [[0.0, 1.0], [0.5, 0.5]]}, "states": 2, "lags": [1]}
    with pytest.raises(FieldError, match="impossible under every lag") as found:
        make_view(read_state({**value, "edits": [[10, 0], [11, 0]]}), RUNS)
    assert found.value.field == "edits"


@given(st.integers(0, 2**32), st.sampled_from([{}, {"kind": "bayes"}, {"kind": "position", "evidence": "sum"}]))
def test_views_hold_laws_and_attention(seed: int, model: dict[str, Any]) -> None:
    view = view_of({"length": 24, "seed": seed, "models": [model]})
    assert np.abs(view.arrays["law/0"].sum(axis=-1) - 1).max() < 1e-5
    attention = view.arrays["attention/0"].astype(np.float64) / 65535
    assert np.abs(attention.sum(axis=-1) - 1).max() < 1e-3
    assert np.abs(np.triu(attention, 1)).max() == 0
