"""The figure of absolute and relative positions, on the circuit itself and on small trained models."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.small_configs import small
from support.small_runs import make_all

import sih
from sih.beyond.relative_positions import positions, positions_figure, positions_statements
from sih.beyond.relative_positions.positions import (
    EXPERIMENT,
    PositionsConfig,
    TrainedPositions,
    first_offsets,
    maps,
    read_heads,
)
from sih.results.judging import ShareRule
from sih.training.runs.run_store import RunStore

CONFIG = replace(EXPERIMENT.config, sequences=16, shown=20)


@pytest.fixture
def relative_task() -> sih.Task:
    return sih.Task(sih.random_transition_matrix(5, rng=0, law="uniform"), (1, 2, 3), 48)


def test_the_construction_reads_as_the_circuit(relative_task: sih.Task) -> None:
    """Loops over the definition: p-tilde by lag, a uniform second layer, the candidates."""
    model = sih.construct(relative_task, kind="relative")
    readings = read_heads(model, relative_task, CONFIG)
    assert [one.name for one in readings] == ["1.1", "2.1", "3.1"]
    first, second, last = readings
    assert first.correlation == pytest.approx(1, abs=1e-6)
    assert sum(first.parents.values()) == pytest.approx(1, abs=1e-6)
    assert second.from_uniform < 0.2
    assert last.selective
    assert sum(first_offsets(readings)["3.1"][:3]) == pytest.approx(1, abs=1e-6)
    assert first_offsets(readings)["1.1"][0] == pytest.approx(0, abs=1e-6)


def test_maps_leave_rows_of_the_start_token_white(relative_task: sih.Task) -> None:
    model = sih.construct(relative_task, kind="relative")
    found = maps("relative", model, relative_task, CONFIG).maps
    assert found["1.1"].shape == (20, 20)
    assert found["1.1"][:3].isnan().all()
    assert not found["1.1"][3:].isnan().any()
    assert found["3.1"][:2].isnan().all()
    rows = found["1.1"][3:]
    parents = torch.stack([rows.diagonal(3 - k)[: len(rows)] for k in (1, 2, 3)])
    assert parents.sum(dim=0) == pytest.approx(torch.ones(len(rows)).double(), abs=1e-6)


def test_an_absolute_model_has_no_white_rows(relative_task: sih.Task) -> None:
    found = maps("absolute", sih.construct(relative_task), relative_task, CONFIG).maps
    assert list(found) == ["1.1", "2.1", "2.2", "2.3", "3.1"]
    assert not any(one.isnan().any() for one in found.values())


def trained(seed: int, **values: Any) -> TrainedPositions:
    usual = TrainedPositions(
        *("a", True, (1, 1, 1), 64, 4000, seed, 0.8, True, -0.8, 0.16, True),
        by_offset=dict.fromkeys(("1.1", "2.1", "3.1"), (0.1,) * positions.OFFSETS),
    )
    return replace(usual, name=f"seed{seed}", **values)


@pytest.mark.parametrize(
    ("change", "found", "circuit"),
    [
        ({}, True, True),
        ({"compares": 0.9}, True, True),
        ({"compares": 0.1}, True, False),
        ({"from_uniform": 0.6}, True, False),
        ({"selects": False}, False, False),
        ({"predicts": False}, False, False),
    ],
)
def test_the_rule(change: dict[str, Any], found: bool, circuit: bool) -> None:
    one = trained(0, **change)
    assert (one.found, one.circuit) == (found, circuit)


def test_the_runs_are_those_of_the_file_that_train_as_the_paper_does() -> None:
    runs = positions.measured_runs((1, 2, 3))
    assert {(64, "uniform", 0, seed) for seed in range(10)} <= {
        (one.length, one.law, one.matrix, one.seed) for one in runs
    }
    ours = [one for one in runs if (one.length, one.law) == (64, "uniform")]
    assert [
        one.seed for one in sorted(ours, key=lambda one: one.kl_over_ml) if not one.circuit
    ] == [
        *(4, 6, 9),
    ]
    assert positions.measured_runs((1, 3, 4)) == ()  # these have batches of 128


def test_the_statement_counts_every_measured_run() -> None:
    every = [
        positions.MeasuredRun(64, "uniform", 0, seed, 0.8, circuit=seed < 9) for seed in range(10)
    ]
    data = positions.Positions(CONFIG, (), (), {}, tuple(every))
    each = positions_statements.FOUND.measure(data)
    assert [one.value for one in each] == [1.0] * 9 + [0.0]
    finding = positions_statements.FOUND.judge(data)
    assert finding.verdict == "holds"
    assert isinstance(positions_statements.FOUND.rule, ShareRule)
    few = positions.Positions(CONFIG, (), (), {}, tuple(every[:1]))
    assert positions_statements.FOUND.judge(few).verdict == "unsettled"


def test_small_trained_models_are_read_and_drawn(tmp_path: Path) -> None:
    """Models of each sort that were hardly trained: they are shown, and have found nothing."""
    sizes = {"lags": (1, 2, 3), "states": 3, "length": 24, "steps": 8, "evaluate_every": 8}
    relative = [small(model="relative", heads=(1, 1, 1), seed=seed, **sizes) for seed in (0, 1)]
    standard = small(model="standard", heads=(1, 3, 1), **sizes)
    names = ("relative-a", "relative-b", "standard-a")
    folder = make_all(tmp_path, dict(zip(names, (*relative, standard), strict=True)))
    config = replace(CONFIG, models=names, evaluated=8)
    data = positions.compute(config, RunStore(folder))
    assert [row.name for row in data.rows] == ["", "standard-a", "", data.rows[-1].name]
    assert data.rows[-1].name in names[:2]
    assert {one.name for one in data.models} == set(names)
    assert not any(one.circuit for one in data.models)
    assert all(math.isfinite(one.kl_over_ml) for one in data.models)
    rows = positions_figure.table(data)
    assert len(rows) == 1 + 3
    figure = positions_figure.draw(data)
    assert sum(ax.get_visible() for ax in figure.axes) == 5 + 5 + 3 + 3 + 2


def test_without_relative_models_the_constructions_are_shown(tmp_path: Path) -> None:
    config = replace(CONFIG, models=("paper-1.2.3-length64",))
    data = positions.compute(config, RunStore(tmp_path))
    assert [row.name for row in data.rows] == ["", "paper-1.2.3-length64", ""]
    assert all(not one.relative for one in data.models)
    assert positions_figure.draw(data).axes


def test_what_is_chosen_is_chosen_by_what_it_is() -> None:
    """All that ship, are trained as the paper trains, and have one head in each of three layers."""
    shipped = RunStore()
    chosen = set(positions.reads(PositionsConfig(), shipped))
    for name in shipped.names():
        run = shipped.run(name)
        config = run.config
        if config.model.kind == "relative" and config.task.lags == (1, 2, 3):
            plain = config.recipe.name == "uniform" and config.optimiser.name == "adam"
            assert (name in chosen) == (plain and config.heads == (1, 1, 1))
    assert "paper-1.2.3" in chosen
    assert "standard-1.2.3" not in chosen
    assert not EXPERIMENT.beyond  # part of `sih reproduce`
