"""What a newcomer would run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


def test_the_readmes_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert len([line for line in code.splitlines() if line.strip()]) <= 11
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    means = [float(x) for x in re.findall(r"(?:bma|selective|maximum_likelihood) +([0-9.]+)", done.stdout)]
    assert means == sorted(means)
    assert len(means) == 3


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_run(name: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "examples" / name)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_documents_point_at_things_that_exist() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        text = document.read_text()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (document.parent / target).exists(), f"{document.name} points at {target}"
        for test, name in re.findall(r"`(?:tests/)?((?:unit|integration)/[\w/]+\.py)(?:::(\w+))?", text):
            assert (ROOT / "tests" / test).exists(), f"{document.name} names {test}"
            assert not name or f"def {name}(" in (ROOT / "tests" / test).read_text(), f"{document.name} names {name}"
