"""The instruments of `research/` for relative positions, at tiny sizes: their numbers and what they leave out."""

from __future__ import annotations

import csv
import math
import shutil
import statistics
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from support.small_runs import make

import sih
from research import lengths, relative_rates
from research.relative_rates import Found
from sih.attention.circuit_signs import circuit_signs
from sih.base.files import read_json, write_json
from sih.training.presets import preset
from sih.training.runs.evaluate import fresh_sequences
from sih.training.runs.run import Run

SIZES: dict[str, Any] = {
    "lags": (1, 2),
    "length": 20,
    "dim": 8,
    "qk_dim": 4,
    "batch": 8,
    "steps": 6,
    "held_out": 16,
}
SMALL = preset("paper-relative", **SIZES, evaluate_every=3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of one cell, one of another, and what has no row."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        make(folder / f"seed{seed}", SMALL.replace(seed=seed))
    make(folder / "start", SMALL.replace(start=True, reach=5, offsets=("both", "none", "keys")))
    make(folder / "half", SMALL.replace(seed=9), stop_after=3)
    make(folder / "standard", preset("paper", **SIZES))
    return folder


def rows_in(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def kl_over_ml(model: sih.RelativeTransformer, task: sih.Task, tokens: torch.Tensor) -> float:
    """The KL from what each lag says of the next token, weighed by the lag's posterior; of the model and of ML."""
    weights = sih.lag_posterior(tokens, task).tolist()
    laws = (model.predict(tokens).double().tolist(), sih.maximum_likelihood(tokens, task).tolist())
    P, sums = task.P.tolist(), [0.0, 0.0]
    for b, sequence in enumerate(tokens.tolist()):
        for i in range(task.max_lag, len(sequence) - 1):
            for weight, lag in zip(weights[b][i], task.lags, strict=True):
                true = P[sequence[i - lag + 1]]
                for which, law in enumerate(laws):
                    sums[which] += weight * sum(
                        p * math.log(p / q) for p, q in zip(true, law[b][i], strict=True)
                    )
    return sums[0] / sums[1]


def test_a_row_for_each_run_and_a_rate_for_each_cell(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs, tmp_path / "runs")
    environment = tmp_path / "runs" / "seed1" / "environment.json"
    write_json(environment, {**read_json(environment), "core_seconds": 60.0})
    out, cells = tmp_path / "rates.csv", tmp_path / "cells.csv"
    words = [str(tmp_path / "runs"), "--out", str(out), "--cells", str(cells)]
    assert relative_rates.main(words) == 0
    err = capsys.readouterr().err
    assert "half is not finished" in err
    assert "standard is no run with relative positions" in err
    rows = {row["run"]: row for row in rows_in(out)}
    assert list(rows) == ["seed0", "seed1", "seed2", "start"]
    assert [rows["start"][name] for name in ("reach", "offsets", "start")] == [
        "5",
        "both none keys",
        "True",
    ]
    assert [rows["seed2"][name] for name in ("lags", "law", "matrix", "reach", "seed")] == [
        "1 2",
        "uniform",
        "0",
        "",
        "2",
    ]
    assert rows["seed1"]["core_seconds"] == "60.0"
    for name, row in rows.items():
        run = Run(tmp_path / "runs" / name)
        found = run.evaluation
        assert found is not None
        assert float(row["kl_over_ml"]) == pytest.approx(found.kl_over_ml.mean, abs=1e-4)
        assert (row["found"], row["sequences"]) == ("no", str(found.sequences))
        signs = circuit_signs(run.model, sih.sample(run.task, 512, rng=4321), run.task)
        assert float(row["correlation"]) == pytest.approx(signs.correlation, abs=1e-3)
        assert [float(row["copies_1"]), float(row["copies_2"])] == pytest.approx(
            signs.copies, abs=1e-3
        )
        assert (int(row["offset_1"]), int(row["offset_2"])) == signs.offsets
        assert float(row["selected"]) == pytest.approx(signs.selected, abs=1e-3)
    (cell,) = rows_in(cells)
    assert [cell[name] for name in ("runs", "found", "found_rate", "below_ml", "start")] == [
        "3",
        "0",
        "0.000",
        "0",
        "False",
    ]
    ratios = [float(rows[f"seed{seed}"]["kl_over_ml"]) for seed in range(3)]
    assert float(cell["kl_over_ml_median"]) == pytest.approx(statistics.median(ratios), abs=1e-4)
    before = out.read_bytes()
    kept = (tmp_path / "runs" / "seed0" / "evaluation.json").stat().st_mtime_ns
    assert relative_rates.main(words) == 0  # what was measured is read
    assert out.read_bytes() == before
    assert (tmp_path / "runs" / "seed0" / "evaluation.json").stat().st_mtime_ns == kept


def test_rates_have_wilsons_interval_and_small_cells_none() -> None:
    def run(setting: str, found: bool, ratio: float) -> Found:
        return Found((setting,), found, ratio, [])

    four = [
        run("a", True, 0.8),
        run("b", True, 0.5),
        run("a", False, 1.3),
        run("a", True, 0.9),
        run("a", False, 0.95),
    ]
    (row,) = relative_rates.cells_of([*four, run("b", True, 0.5)])
    for rate, low, high in (
        (0.5, float(row[4]), float(row[5])),
        (0.75, float(row[8]), float(row[9])),
    ):
        for end in (low, high):  # where |p - rate| is 1.96 sqrt(p (1 - p) / n)
            assert abs(end - rate) == pytest.approx(
                1.96 * math.sqrt(end * (1 - end) / 4), abs=2e-3
            )  # three digits
        assert low < rate < high
    assert [row[i] for i in (0, 1, 2, 3, 6, 7, 10)] == [
        "a",
        "4",
        "2",
        "0.500",
        "3",
        "0.750",
        "0.9250",
    ]


def test_the_first_evaluation_below_maximum_likelihood() -> None:
    kls = [(0, 0.5), (250, 0.11), (500, 0.09), (750, 0.12), (1000, 0.08)]
    lines = [{"step": step, "kl": kl, "ml": 0.1} for step, kl in kls]
    assert relative_rates.below_ml(cast("Run", SimpleNamespace(evaluations=lines))) == 500
    assert relative_rates.below_ml(cast("Run", SimpleNamespace(evaluations=lines[:2]))) is None


def test_models_are_judged_at_lengths_beside_the_circuit(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "lengths.csv"
    names = [str(runs / name) for name in ("seed0", "start")]
    words = [*names, "--out", str(out), "--lengths", "20", "45", "--sequences", "7"]
    assert lengths.main(words) == 0
    rows = rows_in(out)
    assert [(row["model"], row["length"]) for row in rows] == [
        (name, length) for name in ("circuit", "seed0", "start") for length in ("20", "45")
    ]
    assert [rows[n]["trained"] for n in (0, 2, 4)] == ["", "20", "20"]
    assert [rows[n]["offsets"] for n in (0, 2, 4)] == ["both none keys", "both", "both none keys"]
    assert [rows[n]["reach"] for n in (0, 2, 4)] == ["3", "19", "5"]
    task = Run(runs / "seed0").task
    models = {
        "circuit": sih.construct(task, kind="relative", form="standard"),
        **{name: Run(runs / name).model for name in ("seed0", "start")},
    }
    for row in rows:
        longer = task.with_length(int(row["length"]))
        tokens = next(fresh_sequences(longer))[:7]
        model = models[row["model"]]
        assert isinstance(model, sih.RelativeTransformer)
        assert float(row["kl_over_ml"]) == pytest.approx(
            kl_over_ml(model, longer, tokens), rel=1e-4
        )


def test_what_has_no_row_is_said_in_one_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.csv"
    for name, said in (
        ("standard", "is a standard model, which takes no longer sequences"),
        ("half", "is not finished"),
        ("nothing", "nothing"),
    ):
        assert lengths.main([str(runs / name), "--out", str(out)]) == 2
        assert said in capsys.readouterr().err
    assert lengths.main([str(runs / "seed0"), "--out", str(out), "--sequences", "0"]) == 2
    assert (
        relative_rates.main(
            [str(runs / "half"), "--out", str(out), "--cells", str(tmp_path / "c.csv")]
        )
        == 2
    )
    assert "there is no finished run with relative positions" in capsys.readouterr().err
    assert not out.exists()
