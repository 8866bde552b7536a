from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

import sih
from sih.cli import main
from sih.cli.models_command import show_models

SHIPPED = Path(sih.__file__).parent / "shipped"
NAMES = sorted(
    folder.name for folder in SHIPPED.iterdir() if (folder / "weights.safetensors").is_file()
)
AT_80 = """\
Shipped models: KL/ML on fresh sequences ± two standard errors
run                                heads      length  trained      KL/ML      ±
paper-1.2.3                        1 3 1         128  Adam only    1.076  0.014
paper-disentangled-3.5.7-length32  1 3 1          32  Adam only    1.684  0.020
standard-1.2.3-1.3.1.1.1           1 3 1 1 1     128  SOAP, roles  0.707  0.008
no room for: lags, steps, model, KL, ML, BMA (a wider terminal shows them)
Adam only (length 32): Adam, unaided
Adam only (length 128): Adam, unaided (the paper's setting)
SOAP, roles (length 128): SOAP, harmonic start, short sequences first, falling
learning rate, layers restricted to their roles for 600 of 2,000 steps
`sih runs show NAME` has more: the command that trains it, KL/ML by tokens seen,
its heads
"""


def printed(names: list[str], width: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    show_models([sih.open_run(name) for name in names], console)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_models_lists_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--plain"]) == 0
    assert capsys.readouterr().out.split() == NAMES
    with pytest.raises(ValueError, match="no model 'none such'"):
        sih.load("none such")


def test_at_80_columns() -> None:
    names = ["paper-1.2.3", "paper-disentangled-3.5.7-length32", "standard-1.2.3-1.3.1.1.1"]
    assert printed(names, 80) == AT_80.splitlines()


def test_at_80_columns_no_word_is_broken_and_no_line_too_long() -> None:
    lines = printed(NAMES, 80)
    assert [row.split()[0] for row in lines[2 : 2 + len(NAMES)]] == NAMES
    assert max(map(len, lines)) <= 80  # a terminal breaks longer ones inside their words
    one_line_each = printed(NAMES, 1_000)[2 + len(NAMES) :]
    assert " ".join(" ".join(one_line_each).split()) in " ".join(" ".join(lines).split())


def test_a_wide_table_has_everything_that_the_files_say(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    header = [
        "run",
        "model",
        "lags",
        "heads",
        "length",
        "trained",
        "steps",
        "KL",
        "ML",
        "BMA",
        "KL/ML",
        "±",
    ]
    assert lines[1].split() == header
    for line, name in zip(lines[2:], NAMES, strict=False):
        found = json.loads((SHIPPED / name / "evaluation.json").read_text())
        ratio, error = found["kl_over_ml"]
        numbers = [f"{found[each][0]:.4f}" for each in ("kl", "ml", "bma")]
        assert line.split()[0] == name
        assert float(line.split()[-1]) > 0  # no interval is printed as none
        assert line.split()[-5:] == [*numbers, f"{ratio:.3f}", f"{2 * error:.3f}"]
