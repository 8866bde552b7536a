"""Circuits that were saved are read, rebuilt to the same weights, and verified, by whatever code there is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.saved_circuits import FILE, constructed, rebuilt, sums

import sih
from sih.base.errors import DTYPES
from sih.circuits.circuit_table import read_circuit
from sih.circuits.verification import circuit_and_task
from sih.cli import main

LINES: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text().splitlines()]
SOME = 13
"""Every so many are read in `make test`, all in `make test-all`."""
EACH = [
    pytest.param(
        line,
        id=f"{number} {line['target']} {line['options']}",
        marks=[] if number % SOME == 0 or line["options"].get("kind") else [pytest.mark.slow],
    )
    for number, line in enumerate(LINES)
]
OLD = Path(__file__).parent / "circuit_of_version_0_1"


def numbers(value: Any) -> list[Any]:
    """Return the leaves of plain JSON, in the order of names."""
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in [name, *numbers(value[name])]]
    return (
        [leaf for each in value for leaf in numbers(each)]
        if isinstance(value, list | tuple)
        else [value]
    )


@pytest.mark.parametrize("line", EACH)
def test_it_is_read_rebuilt_and_verified(line: dict[str, Any], tmp_path: Path) -> None:
    model = rebuilt(line)
    found = sums(model)
    assert found.keys() == line["sums"].keys()
    for name, (size, wave) in line["sums"].items():
        assert found[name] == pytest.approx((size, wave), rel=1e-11, abs=1e-11 * size), name
    sih.save(model, tmp_path / "circuit")
    loaded = sih.load(tmp_path / "circuit")
    assert loaded.notes == line["notes"]
    certificate = sih.verify(loaded)
    assert certificate.ok
    wanted = line["certified"]
    assert certificate.first_exact_position == wanted["first"]
    assert certificate.tolerance == pytest.approx(wanted["tolerance"], rel=1e-9)
    assert certificate.bound == (
        None if wanted["bound"] is None else pytest.approx(wanted["bound"], rel=1e-9)
    )


@pytest.mark.parametrize("line", EACH)
def test_the_same_options_give_the_same_circuit(line: dict[str, Any]) -> None:
    """To six digits: what is best is searched for, and its last digits are the machine's."""
    options = dict(line["options"])
    if "dtype" in options:
        options["dtype"] = DTYPES[options["dtype"]]
    _, task = circuit_and_task(rebuilt(line))
    today, wanted = (
        read_circuit(notes).to_dict()
        for notes in (
            constructed(task, line["target"], options).notes["circuit"],
            line["notes"]["circuit"],
        )
    )
    if options.get("reading") == "both":  # a fit, of another minimum on another machine
        today["profile"], wanted["profile"] = today["profile"].keys(), wanted["profile"].keys()
    for one, other in zip(numbers(today), numbers(wanted), strict=True):
        assert one == (pytest.approx(other, rel=1e-6) if isinstance(other, float) else other)


def test_what_is_saved_has_every_kind_and_form() -> None:
    circuits = [line["notes"]["circuit"] for line in LINES]
    assert {circuit["target"] for circuit in circuits} == {"paper", "two-lags", "bayes", "looking"}
    assert {circuit["third"] for circuit in circuits} == {
        "mask",
        "position",
        "key",
        "looking",
        "parents",
        "slots",
    }
    assert {"sum", "mean"} == {circuit["evidence"] for circuit in circuits}
    assert any(circuit.get("profile") for circuit in circuits)
    assert {line["options"].get("kind") for line in LINES} == {None, "standard"}
    assert len(LINES) >= 150


def test_a_circuit_of_version_0_1_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has no notes: circuit and task stand in its certificate, in other words."""
    folder = tmp_path / "circuit"
    shutil.copytree(OLD, folder)
    assert main(["verify", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "lags 1 2, target paper, third layer by mask" in printed
    assert "the circuit holds: largest error" in printed
    (folder / "certificate.json").unlink()
    assert main(["verify", str(folder)]) == 2
