from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.small_runs import make

import sih
from sih.base.stats import Estimate
from sih.training.runs.evaluation import (
    EVALUATION,
    digest_of_weights,
    has_found,
    plain_pair,
    read_evaluation,
    read_pair,
    write_evaluation,
)
from sih.training.runs.run import Run


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
    assert kept.windows[-1].kl_over_ml.pair() == pytest.approx(
        found.windows[-1].kl_over_ml.pair(), rel=1e-5
    )
    assert read_evaluation(folder, digest[::-1]) is None
    values = json.loads((folder / EVALUATION).read_text())
    (folder / EVALUATION).write_text(json.dumps({**values, "version": values["version"] + 1}))
    assert Run(folder).evaluation is None
    json.dumps(values, allow_nan=False)
    for one, other in zip(kept.windows, found.windows, strict=True):
        assert one.way.pair() == pytest.approx(other.way.pair(), rel=1e-5, nan_ok=True)
    wrong: list[Any] = [
        {**values, "kl": [1]},
        {**values, "way": ["a", 1]},
        {**values, "windows": [{}]},
        [],
        {**values, "sequences": "many"},
    ]
    for broken in wrong:
        (folder / EVALUATION).write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=r"evaluation.json is no evaluation: "):
            _ = Run(folder).evaluation


def test_a_number_that_is_none_is_read_back() -> None:
    assert plain_pair(Estimate(math.nan, math.nan)) == [None, None]
    assert all(math.isnan(number) for number in read_pair("way", [None, None]).pair())
    assert read_pair("way", plain_pair(Estimate(0.93, 0.01))).pair() == (0.93, 0.01)


@pytest.mark.parametrize(
    ("ways", "found"), [({}, False), ({"17-32": 0.9}, True), ({"17-32": 0.899}, False)]
)
def test_found_is_nine_tenths_of_the_way(ways: dict[str, float], found: bool) -> None:
    as_estimates = {label: Estimate(way, 0.5) for label, way in ways.items()}
    assert has_found(as_estimates) == found
    assert not has_found({**as_estimates, "33-64": Estimate(math.nan, math.nan)})
    assert has_found({**as_estimates, "33-64": Estimate(1.0, 0.0)}) == (found or not ways)


def test_a_run_says_how_it_was_trained_and_how_good_it_is(tmp_path: Path) -> None:
    said = repr(sih.open_run("paper-1.2.3-length32"))
    assert "length=32, trained='Adam, unaided', " in said
    assert said.endswith("kl_over_ml=0.7275 ± 0.0038)")
    assert "held_out" not in said
    make(tmp_path / "run")
    own = sih.open_run(tmp_path / "run")
    assert f"held_out_kl_over_ml={own.held_out_kl_over_ml:.4g})" in repr(own)
    found = sih.evaluate("paper-1.2.3-length32")
    windows = "windows={4-8: 0.5946 ± 0.0029, 9-16: 0.7796 ± 0.0061, 17-31: 1.199 ± 0.023}"
    assert f"{windows}, ways={{17-31: 0.98}}, found=True, sequences=8192)" in repr(found)
    assert repr(found.windows[0]).startswith("Window(tokens='4-8', kl=0.1030 ± 0.0011, ")
    assert ["way=" in repr(window) for window in found.windows] == [False, False, True]
