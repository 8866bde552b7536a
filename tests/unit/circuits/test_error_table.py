"""The largest error of a circuit over masks, temperatures and number formats."""

from __future__ import annotations

import torch

import sih
from sih.circuits import error_table

TASK = sih.Task([[0.8, 0.2], [0.4, 0.6]], (1, 2), 16)


def test_each_line_is_what_verify_finds_or_why_there_is_nothing() -> None:
    rows = error_table(TASK, lams=(20.0, 500.0), betas=(3.0,), dtypes=(torch.float64,))
    assert [(row["lam"], row["beta"], row["dtype"]) for row in rows] == [
        (20.0, 3.0, "float64"),
        (500.0, 3.0, "float64"),
    ]
    found = sih.verify(sih.construct(TASK, lam=500.0, beta=3.0), TASK)
    assert rows[1]["max_error"] == found.max_error
    assert rows[1]["tolerance"] == found.tolerance
    assert rows[1]["ok"]
    (refused,) = error_table(TASK, lams=(5.0,), betas=(3.0,), dtypes=(torch.float64,))
    assert refused["max_error"] is None
    assert "lam=5 is too small" in refused["refused"]


def test_a_circuit_that_sets_its_temperature_has_a_line_for_each_strength() -> None:
    rows = error_table(TASK, target="bayes", lams=(1e8,), betas=(1.0, 2.0), dtypes=(torch.float64,))
    assert [(row["beta"], row["ok"]) for row in rows] == [(None, True)]
