from __future__ import annotations

from pathlib import Path

import pytest

from sih.report.subjects import figures
from sih.results.sources import closure, digest, imports, read_source, source_files


def test_what_an_experiment_rests_on() -> None:
    found = closure("sih.claim.claim_expectations")
    assert {"sih.claim.exact", "sih.task.matrices"} <= found
    assert "sih.training.config" in closure("sih.paper.scaling")
    assert "sih.training.trainer" not in closure("sih.paper.scaling")  # a run is read, not trained
    assert "sih.training.runs.run_store" in imports("sih.paper.scaling")
    assert not {"sih.training.runs.run", "sih.training.config"} & closure(
        "sih.claim.claim_histogram"
    )


@pytest.mark.parametrize("name", figures())
def test_data_rests_on_no_drawing_and_on_c_where_models_run(name: str) -> None:
    module = figures()[name].experiment.compute.__module__
    found = closure(module)
    ends = ("_figure", "_panels", "_statements", ".contents")
    assert not {part for part in found if part.endswith(ends)}
    assert not {"sih.results.style", "sih.results.judging"} & found
    rooms = {part.split(".")[1] for part in found if "." in part}
    assert not rooms & {"figures", "report", "cli", "explorer"}
    names = {path.name for path in source_files(module)}
    assert ("attention.c" in names) is ("causal.py" in names)
    assert "attention.c" in {path.name for path in source_files("sih.paper.trained")}


def test_data_beside_a_module_counts() -> None:
    assert "sampled.npz" in {path.name for path in source_files("sih.claim.claim_histogram")}
    assert "sampled.npz" not in {path.name for path in source_files("sih.paper.predictors")}


def test_a_digest_changes_with_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, read = digest("sih.task.matrices"), Path.read_bytes
    for changed in source_files("sih.task.matrices"):
        with monkeypatch.context() as patch:
            patch.setattr(
                Path,
                "read_bytes",
                lambda path, at=changed: read(path) + b"\nx = 1\n" * (path == at),
            )
            assert digest("sih.task.matrices") != plain
    assert digest("sih.task.matrices") == plain


PLAIN = b"""
def half(x: float) -> float:
    return x / 2
"""


@pytest.mark.parametrize(
    "same",
    [
        b"def half(x: float) -> float: return x / 2",
        b'"""A module."""\ndef half(\n    x: float,\n) -> float:\n    "Halves."\n    # by division\n    return (x / 2)',
    ],
)
def test_words_and_line_breaks_do_not_count(same: bytes) -> None:
    assert read_source(same).digest == read_source(PLAIN).digest


@pytest.mark.parametrize(
    "other",
    [
        b"def half(x: float) -> float: return x / 3",
        b"def half(y: float) -> float: return y / 2",
        b'def half(x: float) -> float: return x / 2\nCAPTION = "Halves."',
        b"def half(x: float) -> float: return -x / 2",
    ],
)
def test_code_counts(other: bytes) -> None:
    assert read_source(other).digest != read_source(PLAIN).digest


def test_a_function_that_is_only_described_is_read() -> None:
    assert read_source(b'class Odd(ValueError):\n    """Says so."""').digest
