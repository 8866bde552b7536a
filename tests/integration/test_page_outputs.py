"""What pages print below their code is what the code prints (`python -m website.blocks` mends it)."""

from __future__ import annotations

from pathlib import Path

import pytest

from website import blocks

ROOT = Path(__file__).parents[2]
SLOW = {
    "train-your-own": "trains for a minute",
    "quickstart": "two trained models on 512 sequences of length 128, twice",
    "ablate-and-patch": "ten passes of a trained model over 512 sequences of length 128",
    "diagnose-a-model": "reads a trained model on 512 sequences of length 128",
    "find-evidence-paths": "splits the scores of 512 sequences",
    "judge-a-discovery-method": "scores every edge by five methods",
    "reproduce-the-paper": "makes a figure",
    "run-a-sweep": "trains four models",
    "use-the-explorer": "fits the circuits that an exported page holds",
}
"""Pages that `make test-all` alone runs, and why."""
PAGES = [
    path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if any(block.output is not None for block in blocks.blocks(path.read_text()))
]


@pytest.mark.parametrize(
    "page",
    [pytest.param(path, marks=pytest.mark.slow if path.stem in SLOW else ()) for path in PAGES],
    ids=lambda path: path.stem,
)
def test_a_page_shows_what_its_code_prints(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "\n".join(blocks.differences(page.read_text())) == ""


def test_every_how_to_and_the_quickstart_are_compared() -> None:
    compared = {path.stem for path in PAGES}
    pages = {path.stem for path in (ROOT / "docs" / "how-to").glob("*.md")} - {"index"}
    assert {*pages, "quickstart"} <= compared  # test_readme.py has the README
    assert SLOW.keys() <= compared


PAGE = """
```python
x = 2
print(x)
```

Words.

```text
2
```

<!-- not run: a reason -->
```python
raise ValueError
```

```python
print(x + 1, "KL 0.5, took", "0.3 s")
```

```text
3 KL 0.5, took 9.9 s
```
"""


def test_an_output_that_differs_is_found_and_mended() -> None:
    assert blocks.differences(PAGE) == []
    assert blocks.rewritten(PAGE) == PAGE
    wrong = PAGE.replace("```text\n2\n", "```text\n4\n")
    (found,) = blocks.differences(wrong)
    assert "the page has\n4\n" in found
    assert blocks.rewritten(wrong) == PAGE
    assert len(blocks.differences(PAGE.replace("KL 0.5, took 9", "KL 0.6, took 9"))) == 1


def test_commands_run_with_the_files_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (
        "```toml\n# a.toml\nb = 1\n```\n\n```sh\ncat a.toml\nsih --version\n```\n\n```text\n```\n"
    )
    ((block, printed),) = blocks.run(page)
    assert block.output == ""
    assert printed.startswith("# a.toml\nb = 1\nsih ")
