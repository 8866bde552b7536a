"""The same seed gives the same matrix, lags and tokens from one version to the next: they are everybody's data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import sih

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "tokens.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_tokens_stay(case: dict[str, Any]) -> None:
    rng = torch.Generator().manual_seed(case["seed"])
    P = sih.random_transition_matrix(case["states"], rng=rng)
    task = sih.Task(P, case["lags"], case["length"], case.get("lag_prior"))
    batch = sih.sample(task, case["size"], rng=rng)
    assert batch.lags.tolist() == case["lags_drawn"]
    assert [" ".join(map(str, row)) for row in batch.tokens.tolist()] == case["tokens"]
