from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from support.views import TRAINED, view_of

from sih.explorer.parse_state import read_state
from sih.explorer.python_snippet import snippet

STATES: dict[str, dict[str, Any]] = {
    "first visit": {"length": 32},
    "edited": {
        "length": 32,
        "edits": [[7, 2], [20, 0]],
        "matrix": {"seed": 3, "concentration": 0.3},
    },
    "two models": {"length": 32, "models": [{"kind": "position", "beta": 20.0}, {"kind": "bayes"}]},
    "fewer heads": {
        "length": 40,
        "lags": [1, 3, 4],
        "models": [{"kind": "fewer"}, {"heads": 2, "evidence": "sum"}],
    },
    "two lags": {"length": 40, "lags": [2, 5], "models": [{"kind": "two-lags", "temper": 0.5}]},
    "mixed": {
        "length": 32,
        "models": [{"kind": "bayes", "heads": 2}, {"kind": "bayes", "heads": 3}],
        "offset": 3,
    },
    "mixed progression": {
        "length": 40,
        "lags": [3, 5, 7],
        "models": [{"kind": "bayes"}, {"kind": "bayes", "heads": 1}],
    },
    "both sides": {"length": 20, "models": [{"kind": "both"}, {"kind": "both", "heads": 2}]},
    "looking": {
        "length": 32,
        "models": [{"kind": "looking"}, {"kind": "looking", "looking": 0.3, "temper": 1e-5}],
    },
    "relative": {
        "length": 32,
        "models": [{"kind": "relative", "beta": 20.0}, {"kind": "relative-bayes"}],
    },
    "absolute and relative": {"length": 40, "lags": [2, 5], "models": [{}, {"kind": "relative"}]},
    "trained": TRAINED,
    "rows": {
        "states": 2,
        "length": 20,
        "matrix": {"rows": [[0.25, 0.75], [0.5, 0.5]]},
        "models": [{"lam": 900.0}],
    },
    "uniform": {"length": 30, "matrix": {"kind": "uniform", "seed": 11}},
    "sparse": {"length": 30, "matrix": {"kind": "sparse", "seed": 5}},
    "near-periodic": {"length": 30, "states": 4, "matrix": {"kind": "near-periodic"}, "query": 3},
    "doubly stochastic": {
        "length": 30,
        "matrix": {"kind": "doubly-stochastic", "concentration": 2.0},
    },
    "cycle": {"length": 30, "states": 7, "matrix": {"kind": "cycle"}},
}


@pytest.mark.parametrize("case", STATES)
def test_the_python_it_gives_makes_the_same_numbers(case: str) -> None:
    """The snippet shares nothing with the view but `sih`'s public names: it builds the dense models, fitted or not."""
    made: dict[str, Any] = {}
    exec(snippet(read_state(STATES[case])), made)
    view = view_of(STATES[case])
    tokens, task, batch = made["batch"].tokens, made["task"], made["batch"]
    assert view.arrays["tokens"].tolist() == tokens[0].tolist()
    assert view.header["lag"] == batch.lags.item()
    assert (
        np.abs(np.exp(view.arrays["log_weights/posterior"]) - made["posterior"][0].numpy()).max()
        < 1e-6
    )
    for index, _ in enumerate(view.header["models"]):
        attention = torch.cat([heads[0] for heads in made[f"attention_{index + 1}"]])
        assert (
            np.abs(view.arrays[f"attention/{index}"] / 65535 - attention.detach().numpy()).max()
            < 2e-5
        )
        assert (
            np.abs(view.arrays[f"law/{index}"] - made[f"law_{index + 1}"][0].detach().numpy()).max()
            < 1e-5
        )
        last = attention[-1].detach().numpy()
        for j, lag in enumerate(task.lags):
            for i in range(lag - 1, task.length):
                found = np.exp(view.arrays[f"log_weights/{index}"][i, j])
                assert abs(found - last[i, i - lag + 1]) < 1e-5
    assert made["query"] == STATES[case].get("query", task.length // 3)
