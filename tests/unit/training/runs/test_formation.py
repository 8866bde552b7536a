from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.kept_runs import make_kept

from sih.base.stats import Estimate
from sih.training.runs.evaluation import digest_of_weights
from sih.training.runs.formation import (
    FORMATION,
    Checkpoint,
    Formation,
    read_formation,
    write_formation,
)
from sih.training.runs.run import Run


def seen(step: int, copies: tuple[float, ...], selected: float, *ways: float) -> Checkpoint:
    return Checkpoint(
        step,
        copies,
        selected,
        {f"{17 + i}-{17 + i}": Estimate(way, 0.01) for i, way in enumerate(ways)},
    )


COURSE = (
    seen(10, (0.2, 0.49), 0.1, 0.2, 0.3),
    seen(20, (0.5, 0.2), 0.79, 0.95, 0.89),
    seen(30, (0.2, 0.1), 0.8, 0.89, 0.95),
    seen(40, (0.2, 0.1), 0.7, 0.9, 0.9),
    seen(50, (0.9, 0.1), 0.9, 0.1, 0.1),
)


def test_each_is_the_first_step_that_has_it() -> None:
    found = Formation(COURSE, 128)
    assert (found.copying, found.selective, found.circuit) == (20, 30, 40)
    early = Formation(COURSE[:1], 128)
    assert (early.copying, early.selective, early.circuit) == (None, None, None)
    said = "copying at step 20, a selective head at step 30, the circuit at step 40"
    assert found.in_words == f"{said} (at 5 measured steps, 10 to 50; 128 sequences)"
    assert early.in_words.startswith(
        "copying never, a selective head never, the circuit never (at 1 measured"
    )
    assert repr(found) == (
        "Formation(copying=20, selective=30, circuit=40, checkpoints=5 from 10 to 50, sequences=128)"
    )


def test_without_layers_below_the_last_nothing_copies_and_without_windows_nothing_is_found() -> (
    None
):
    assert not seen(1, (), 0.9).copying
    assert not seen(1, (), 0.9).circuit
    assert not seen(1, (), 0.9, math.nan).circuit


def test_a_kept_formation_is_that_of_its_weights_alone(tmp_path: Path) -> None:
    run = make_kept(tmp_path / "run")
    digest = digest_of_weights(tmp_path / "run" / "weights.safetensors")
    assert run.formation is None
    found = Formation((*COURSE, seen(60, (0.123456789,), 1 / 3, math.nan)), 128)
    write_formation(run.folder, found, digest)
    kept = Run(run.folder).formation
    assert kept is not None
    assert repr(kept) == repr(found)
    for one, other in zip(kept.checkpoints, found.checkpoints, strict=True):
        assert one.copies == pytest.approx(other.copies, rel=1e-5)
        assert one.selected == pytest.approx(other.selected, rel=1e-5)
        assert [way.pair() for way in one.ways.values()][:1] == [
            pytest.approx(way.pair(), nan_ok=True) for way in other.ways.values()
        ][:1]
    assert read_formation(run.folder, digest[::-1]) is None
    assert read_formation(tmp_path, digest) is None
    file = run.folder / FORMATION
    values = json.loads(file.read_text())
    json.dumps(values, allow_nan=False)
    file.write_text(json.dumps({**values, "version": values["version"] + 1}))
    assert Run(run.folder).formation is None
    first = values["checkpoints"][0]
    wrong: list[Any] = [
        [],
        {**values, "checkpoints": []},
        {**values, "checkpoints": [3]},
        {**values, "checkpoints": [{**first, "copies": ["a"]}]},
        {**values, "checkpoints": [{**first, "ways": {"17-32": [1]}}]},
        {**values, "checkpoints": [{**first, "selected": "much"}]},
    ]
    for broken in wrong:
        file.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=r"formation.json is no formation: ") as error:
            _ = Run(run.folder).formation
        assert "\n" not in str(error.value)
