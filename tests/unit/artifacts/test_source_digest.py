from __future__ import annotations

from pathlib import Path

import pytest

from sih.artifacts.source_digest import closure, digest, imports, source_files
from sih.experiments.table import EXPERIMENTS


def test_what_an_experiment_rests_on() -> None:
    found = closure("sih.experiments.claim_expectations")
    assert {"sih.theory.claim", "sih.markov"} <= found
    assert "sih.training.config" in closure("sih.experiments.scaling")
    assert "sih.training.trainer" not in closure("sih.experiments.scaling")  # a run is read, not trained
    assert "sih.runs.run_store" in imports("sih.experiments.scaling")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_data_rests_on_no_drawing_and_on_c_where_models_run(name: str) -> None:
    module = EXPERIMENTS[name].compute.__module__
    rooms = {part.split(".")[1] for part in closure(module) if "." in part}
    assert not rooms & {"figures", "artifacts", "report", "cli", "explorer"}
    names = {path.name for path in source_files(module)}
    assert ("attention.c" in names) is ("causal.py" in names)
    assert "attention.c" in {path.name for path in source_files("sih.experiments.trained")}


def test_a_digest_changes_with_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, read = digest("sih.markov"), Path.read_bytes
    for changed in source_files("sih.markov"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda path, at=changed: read(path) + b" " * (path == at))
            assert digest("sih.markov") != plain
    assert digest("sih.markov") == plain
