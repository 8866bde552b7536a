"""The pages that stand in the repository, the menu, and those made of what is there: home, examples, commands."""

from __future__ import annotations

import io
import os
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from sih.cli import COMMANDS, main

GUIDES = (
    *(
        "mechanism",
        "beyond",
        "claim",
        "training",
        "sweeps",
        "family",
        "family_circuits",
        "inference",
    ),
    *("field_tools", "ground_truth", "explorer", "reliability", "architecture"),
)
"""The guides in the order of the menu; one that is not named comes after these."""
RELATIVE = ("relative_circuit", "relative_bayes", "relative_lengths", "two_layers")
"""The proofs about relative positions, in their order: they come after those of Claim 1."""
ELSEWHERE = ("quickstart", "glossary", "paper_map", "errata", "report", "release")
"""Pages of docs/ that are no guides."""
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples": "examples.md",
}
"""Files and folders beside docs/, and the pages that show them."""


def menu(docs: Path, rooms: list[str]) -> list[dict[str, Any]]:
    """Lay out the menu. Guides and notebooks are found; nothing has to be told of a new one."""
    found = [path.stem for path in sorted(docs.glob("*.md"))]
    others = [name for name in found if name not in (*GUIDES, *ELSEWHERE)]
    guides = [*(name for name in GUIDES if name in found), *others]
    return [
        {"Home": ["index.md", "quickstart.md", "examples.md", "glossary.md"]},
        {
            "Tutorials": [
                "tutorials/index.md",
                *(f"tutorials/{path.stem}.md" for path in tutorials(docs)),
            ]
        },
        {"Guides": [f"{name}.md" for name in guides]},
        {"Proofs": ["proofs/index.md", *(f"proofs/{name}.md" for name in proofs(docs))]},
        {"The paper": ["paper_map.md", "errata.md", "report.md"]},
        {"Reference": [f"reference/{name}.md" for name in ("index", *rooms, "commands", "behind")]},
        {"Project": ["changelog.md", "contributing.md", "release.md", "security.md"]},
    ]


def proofs(docs: Path) -> list[str]:
    """List the pages of proofs: the theorem, the lemmas that it rests on, relative positions."""
    found = {path.stem for path in (docs / "proofs").glob("*.md")} - {"index"}
    lemmas = sorted(found - {"theorem", *RELATIVE})
    return [name for name in ("theorem", *lemmas, *RELATIVE) if name in found]


def tutorials(docs: Path) -> list[Path]:
    """List the notebooks, in their order."""
    return sorted((docs / "tutorials").glob("*.ipynb"))


def source(place: str) -> str:
    """Say which document of the repository a page of the site shows.

    >>> source("index.md"), source("glossary.md")
    ('README.md', 'docs/glossary.md')
    """
    return {page: name for name, page in PAGES.items()}.get(place, f"docs/{place}")


def pages(root: Path) -> dict[str, str]:
    """Give the text of the pages that are not in docs/, by their place in the site."""
    made = {
        place: (root / name).read_text() for name, place in PAGES.items() if name.endswith(".md")
    }
    return made | {"examples.md": examples(root / "examples"), "reference/commands.md": commands()}


def examples(folder: Path) -> str:
    """Show every script."""
    parts = [
        "# Examples\n\nScripts for what people do first, in `examples/`. The tests run each of them."
    ]
    for path in [*sorted(folder.glob("*.py")), *sorted(folder.glob("*/*.py"))]:
        parts.append(
            f"## {path.relative_to(folder).as_posix()}\n\n```python\n{path.read_text().strip()}\n```"
        )
    return "\n\n".join(parts) + "\n"


def commands() -> str:
    """Show what every command says of itself."""
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    codes = "Exit codes: 0 done, 1 a check said no, 2 bad input, 130 interrupted and resumable."
    parts = [f"# Commands\n\nWhat `sih COMMAND --help` prints. {codes}"]
    for name in COMMANDS:
        said = io.StringIO()
        with redirect_stdout(said):
            main([*name.split(), "--help"])
        parts.append(f"## sih {name}\n\n```text\n{said.getvalue().strip()}\n```")
    return "\n\n".join(parts) + "\n"
