from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from support.small_runs import make
from support.strategies import tasks_with_tokens

import sih
from sih.results.beside import (
    by_seeds,
    circuit_law,
    circuits_for,
    trained_law,
)
from sih.results.experiment import FRESH_SEED
from sih.results.models import trained_plainly, unsettled
from sih.training.config import HELD_OUT_SEED, TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore, open_run
from sih.training.runs.run_writer import RunWriter

SMALL = TrainConfig(
    lags=(1, 2),
    states=3,
    length=12,
    heads=(1, 1, 1),
    dim=8,
    qk_dim=4,
    steps=1,
    batch=2,
    held_out=3,
    evaluate_every=1,
)


def run_in(folder: Path, config: TrainConfig = SMALL) -> str:
    make(folder, config)
    return str(folder)


@settings(max_examples=25)
@given(tasks_with_tokens())
def test_the_law_of_a_circuit_is_what_its_weights_predict(
    drawn: tuple[sih.Task, sih.Batch],
) -> None:
    """At every position, those included where the closed form does not hold."""
    task, batch = drawn
    try:
        circuits = circuits_for(task, lam=2000.0)
    except ValueError:
        assume(False)
    assert ("two lags, 1 head" in circuits) is (len(task.lags) == 2)
    for model in circuits.values():
        gap = (circuit_law(model, batch.tokens, task) - model.predict(batch.tokens)).abs().max()
        assert gap <= len(task.lags) * model.circuit.bounds(task, torch.float64).last < 1e-4


def test_early_rows_are_not_the_closed_form(task: sih.Task, rng: torch.Generator) -> None:
    """The test above could not fail there otherwise."""
    batch = sih.sample(task, 4, rng=rng)
    model = circuits_for(task)["construction"]
    weights = sih.circuit_weights(batch.tokens, task, model.circuit)
    early = slice(task.max_lag, model.circuit.first_exact_position)
    gap = sih.mixture(weights, batch.tokens, task) - model.predict(batch.tokens)
    assert gap[:, early].abs().max() > 0.01


def test_runs_by_folder_and_by_name(tmp_path: Path) -> None:
    folder = run_in(tmp_path / "one")
    assert next(iter(RunWriter(SMALL, tmp_path / "unfinished", threads=1))).step == 0
    runs, missing = RunStore().finished(
        [folder, "none such", str(tmp_path / "unfinished"), "standard-1.2.3"]
    )
    assert list(runs) == ["one", "standard-1.2.3"]
    assert missing == ["none such", str(tmp_path / "unfinished")]


def test_a_trained_law_is_the_models(tmp_path: Path, rng: torch.Generator) -> None:
    run = open_run(run_in(tmp_path / "run"))
    tokens = sih.sample(run.task, 130, rng=rng).tokens  # more than are predicted at once
    with torch.no_grad():
        torch.testing.assert_close(
            trained_law(run, tokens), run.model.predict(tokens), rtol=0, atol=1e-6
        )


def test_runs_that_differ_by_seed_are_one(tmp_path: Path) -> None:
    configs = {
        "a": SMALL,
        "wide": SMALL.replace(dim=16),
        "b": SMALL.replace(seed=3),
        "long": SMALL.replace(steps=2),
    }
    runs = [open_run(run_in(tmp_path / name, config)) for name, config in configs.items()]
    assert {one.models: (one.kind, one.heads, one.dim, one.seeds) for one in by_seeds(runs)} == {
        ("a", "b"): ("standard", (1, 1, 1), 8, (0, 3)),
        ("wide",): ("standard", (1, 1, 1), 16, (0,)),
        ("long",): ("standard", (1, 1, 1), 8, (0,)),
    }


def test_plainly_trained_is_the_papers_setting_alone() -> None:
    assert trained_plainly(
        TrainConfig(lags=(1, 3), heads=(1, 1, 1), length=32, steps=30000, seed=4)
    )
    assert trained_plainly(TrainConfig(model="disentangled", length=32))
    assert not trained_plainly(TrainConfig(batch=64))
    assert not trained_plainly(TrainConfig(init="normal"))


@pytest.mark.parametrize(
    ("kl", "falls"), [([3.0, 2.0, 1.0], True), ([3.0, 1.0, 0.99], False), ([3.0], False)]
)
def test_a_run_whose_kl_still_falls_is_unsettled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kl: list[float], falls: bool
) -> None:
    run = open_run(run_in(tmp_path / "run"))
    monkeypatch.setattr(
        Run, "evaluations", [{"step": 500 * n, "kl": value} for n, value in enumerate(kl)]
    )
    assert unsettled(run) == ("at 1,000 steps, where its KL still falls" if falls else "")
    assert unsettled(open_run(run_in(tmp_path / "ended", SMALL.replace(schedule="cosine")))) == ""


def test_fresh_sequences_are_others_than_those_of_training(tmp_path: Path) -> None:
    run = open_run(run_in(tmp_path / "run"))
    fresh, trained, held_out = (
        sih.sample(run.task, 32, rng=torch.Generator().manual_seed(seed)).tokens
        for seed in (FRESH_SEED, run.config.seed, HELD_OUT_SEED + run.config.task.matrix_seed)
    )
    assert not torch.equal(fresh, trained)
    assert not torch.equal(fresh, held_out)
