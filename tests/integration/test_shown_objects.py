"""What users get back shows itself: short in a line, small and whole in HTML, and drawn by `plot()`."""

from __future__ import annotations

import importlib
import pkgutil
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from support.html_reader import HtmlReader

import sih
from sih.base.showing import Drawn, Shown
from sih.training.runs.run_store import SHIPPED

TASK = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=64)
HOSTILE = '<img src=x onerror=alert("x")>&'


def _objects() -> Iterator[Any]:
    batch, circuit = sih.sample(TASK, size=16, rng=0), sih.construct(TASK)
    trained = sih.load("standard-1.2.3")
    yield from (
        TASK,
        batch,
        circuit,
        trained,
        circuit.circuit,
        circuit.trace(batch.tokens),
        trained.trace(batch.tokens),
    )
    yield sih.ParentsTask(TASK.P, sih.random_parents(3, 20, rng=0))
    for other in (
        sih.SwitchingTask(TASK.P, lags=(1, 2), length=32, rate=0.1),
        sih.FreshTask(5, (1, 2), 32),
    ):
        yield from (other, sih.sample(other, size=8, rng=0))
    yield from (
        sih.verify(circuit),
        sih.construct(TASK, target="bayes").circuit,
        sih.two_sided((1, 2), 32, 1),
    )
    yield from (sih.diagnose(TASK, batch, model=circuit), sih.evidence_flow(trained, TASK, batch))
    yield from (
        sih.least_heads((1, 3, 4)),
        sih.head_offsets((1, 2, 3), heads=1),
        sih.exact_heads((1, 2, 3)),
    )
    yield from (
        sih.open_run("standard-1.2.3"),
        sih.TrainConfig(steps=3),
        sih.counterfactual_pairs(TASK, size=1),
    )
    yield from (sih.known_circuit("1.2-two-lags"), sih.LagTracker(TASK))
    small = sih.TrainConfig(
        lags=(1, 2), length=8, heads=(1,), dim=4, qk_dim=2, steps=1, batch=2, held_out=4
    )
    yield from sih.train(small)


OBJECTS = {f"{number} {type(found).__name__}": found for number, found in enumerate(_objects())}


@pytest.mark.parametrize("name", OBJECTS)
def test_it_is_short_in_a_line_and_small_in_html(name: str) -> None:
    found = OBJECTS[name]
    assert isinstance(found, Shown)
    lines = repr(found).splitlines()
    assert len(lines) <= (1 if not isinstance(found, sih.Diagnosis) else 15)
    assert max(map(len, lines)) < 600
    assert "tensor" not in repr(found)
    shown = found._repr_html_()
    HtmlReader(shown)
    assert len(shown) < 300_000


@pytest.mark.parametrize(
    "name", [name for name, found in OBJECTS.items() if isinstance(found, Drawn)]
)
def test_it_is_drawn(name: str) -> None:
    figure = OBJECTS[name].plot()
    assert isinstance(figure, Figure)
    assert figure.axes


def test_every_class_that_can_be_drawn_names_one_function() -> None:
    for module in pkgutil.walk_packages(sih.__path__, "sih."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    drawn, seen = [Drawn], []
    while drawn:
        seen += (found := drawn.pop().__subclasses__())
        drawn += found
    ours = [kind for kind in seen if kind.__module__.startswith("sih.")]
    assert len(ours) > 20
    for kind in ours:
        assert callable(pkgutil.resolve_name(kind.drawing)), kind


def test_what_there_is_nothing_of_has_no_picture() -> None:
    batch = sih.sample(TASK, size=4, rng=0)[:0]
    with pytest.raises(ValueError, match="an empty batch"):
        batch.plot()
    assert "<img" not in batch._repr_html_()


def test_a_run_in_a_folder_with_a_hostile_name(tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE
    shutil.copytree(SHIPPED / "standard-1.3", folder)
    shown = sih.open_run(folder)._repr_html_()
    assert HOSTILE in HtmlReader(shown).text
    assert shown.count("<img") == 1  # its own picture


@pytest.mark.parametrize("damage", ["config.json", "metrics.jsonl"])
def test_a_damaged_run_is_still_shown(tmp_path: Path, damage: str) -> None:
    shutil.copytree(SHIPPED / "standard-1.3", tmp_path / "run")
    run = sih.open_run(tmp_path / "run")
    (tmp_path / "run" / damage).write_text("{\n")
    run = type(run)(run.folder)
    assert "unreadable" in repr(run)
    assert damage in HtmlReader(run._repr_html_()).text


def test_a_training_configuration_is_what_makes_it_again() -> None:
    config = sih.TrainConfig(lags=(1, 3), model="disentangled", init="harmonic", steps=2400, seed=5)
    assert eval(repr(config), {"TrainConfig": sih.TrainConfig}) == config


def test_a_figure_shows_itself_in_a_notebook() -> None:
    assert TASK.plot()._repr_png_().startswith(b"\x89PNG")
