from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.small_runs import make

import sih
from sih.runs.evaluation import EVALUATION, digest_of_weights, read_evaluation, write_evaluation
from sih.runs.run import Run


def test_a_kept_evaluation_is_that_of_its_weights_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    make(folder)
    run = sih.open_run(folder)
    found = sih.evaluate(run)
    assert not (folder / EVALUATION).exists()  # nothing is written unless asked for
    assert run.evaluation is None
    digest = digest_of_weights(folder / "weights.safetensors")
    write_evaluation(folder, found, digest)
    kept = Run(folder).evaluation
    assert kept is not None
    assert repr(kept) == repr(found)
    assert [w.label for w in kept.windows] == [w.label for w in found.windows]
    assert kept.windows[-1].kl_over_ml.pair() == pytest.approx(found.windows[-1].kl_over_ml.pair(), rel=1e-5)
    assert read_evaluation(folder, digest[::-1]) is None
    values = json.loads((folder / EVALUATION).read_text())
    (folder / EVALUATION).write_text(json.dumps({**values, "version": values["version"] + 1}))
    assert Run(folder).evaluation is None
    wrong: list[Any] = [{**values, "kl": [1]}, {**values, "windows": [{}]}, [], {**values, "sequences": "many"}]
    for broken in wrong:
        (folder / EVALUATION).write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=r"evaluation.json is no evaluation: "):
            _ = Run(folder).evaluation


def test_a_run_says_how_it_was_trained_and_how_good_it_is(tmp_path: Path) -> None:
    said = repr(sih.open_run("paper-1.2.3-length32"))
    assert "length=32, trained='Adam, nothing added', " in said
    assert said.endswith("kl_over_ml=0.7275 ± 0.0038)")
    assert "held_out" not in said
    make(tmp_path / "run")
    own = sih.open_run(tmp_path / "run")
    assert f"held_out_kl_over_ml={own.held_out_kl_over_ml:.4g})" in repr(own)
    found = sih.evaluate("paper-1.2.3-length32")
    assert "windows={4-8: 0.595 x ML, 9-16: 0.78 x ML, 17-31: 1.2 x ML}, sequences=8192)" in repr(found)
    assert repr(found.windows[0]).startswith("Window(tokens='4-8', kl=0.1030 ± 0.0011, ")
