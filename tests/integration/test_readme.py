"""What a newcomer would run."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("[0-9]*.py"))
SMALL = {"04_train_your_own.py": ["12"]}
EXPECTED = {
    "01_sample_and_predict.py": "the lag was 2",
    "02_build_a_circuit.py": "layer 3 copies the token that each lag says: {1: 1.0, 2: 0.0, 3: 0.0}",
    "03_look_inside_a_trained_model.py": "lag 2: head 3.1 looks at the tokens that lags 1, 2, 3 copy: [0.0, 1.0, 0.0]",
    "04_train_your_own.py": "saved and loaded: the same True",
    "05_diagnose_your_own_model.py": "verdict: Predicts worse than maximum likelihood, better than the "
    "stationary distribution.",
    "06_how_many_heads.py": "mixed, 2 heads: 1.000",
}
"""What the first examples come to."""


def test_the_readmes_example_runs() -> None:
    ((code, printed),) = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S
    )
    lines = [line for line in code.splitlines() if line.strip()]
    assert len([line for line in lines if not line.lstrip().startswith("#")]) == 8
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed  # what it prints stands beside it
    posteriors = [float(line.rpartition(" ")[2]) for line in printed.splitlines()]
    assert len(posteriors) == 3
    assert min(posteriors) > 0.9999


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *SMALL.get(name, [])])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    said = capsys.readouterr().out
    assert said
    assert EXPECTED.get(name, "") in said


def test_the_quickstart_lists_the_examples() -> None:
    (item,) = re.findall(
        r"^- \[Examples\].*(?:\n  .*)*", (ROOT / "docs" / "quickstart.md").read_text(), flags=re.M
    )
    line = " ".join(item.split())
    tools = list((ROOT / "examples" / "tools").glob("*.py"))
    assert (len(EXAMPLES), len(tools)) == (8, 5)
    assert all(
        word in line for word in ("thirteen scripts", "Eight need", "Five, in `examples/tools`")
    )
    words = " ".join(line.split()).lower()
    for name in EXAMPLES:
        assert name.removesuffix(".py").partition("_")[2].replace("_", " ") in words
    assert "paper_in_one_file.py" in line


@pytest.mark.parametrize(
    ("said", "document", "there"),
    [
        (
            "The shares are 0.44 and 0.44 in `paper-1.2.3`",
            "results/evidence-paths.md",
            "| `paper-1.2.3` | 0.44 | 0.44 | 0.04 |",
        ),
        (
            "They are 0.44 and 0.52 in `standard-1.2.3`, which differs in training only",
            "results/evidence-paths.md",
            "| `standard-1.2.3` | 0.52 | 0.44 | 0.04 |",
        ),
        ("101 of the 132 ordered pairs", "results/claim-1.md", "| proved | 101 |"),
        (
            "all but one ordered pair of {1,2,3}",
            "results/claim-1.md",
            "| {1,2,3} | true lag 1, rival 3 |",
        ),
        (
            "Nobody outside the project has reviewed",
            "results/claim-1.md",
            "No one outside the project has read the proofs yet",
        ),
        ("are not the authors of the paper", "../CITATION.cff", "not the authors of the paper"),
        ("are not the authors of the paper", "../pyproject.toml", "not the authors of the paper"),
    ],
)
def test_the_readmes_numbers_stand_in_the_documents(said: str, document: str, there: str) -> None:
    assert said in " ".join((ROOT / "README.md").read_text().split())
    assert there in " ".join((ROOT / "docs" / document).read_text().split())


def test_documents_point_at_things_that_exist() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        text = document.read_text()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (document.parent / target).exists(), f"{document.name} points at {target}"
        for test, name in re.findall(
            r"`(?:tests/)?((?:unit|integration|mathematics|instruments)/[\w/]+\.py)(?:::(\w+))?",
            text,
        ):
            assert (ROOT / "tests" / test).exists(), f"{document.name} names {test}"
            assert not name or f"def {name}(" in (ROOT / "tests" / test).read_text(), (
                f"{document.name} names {name}"
            )
