"""The pages that stand in the repository, the menu, and those made of what is there: home, examples, commands."""

from __future__ import annotations

import ast
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from sih.cli import COMMANDS, main

START = ("installation", "quickstart", "mental-model")
HOW_TO = {
    "Data": ("sample-and-predict", "find-the-lag-in-your-data", "use-another-task"),
    "Circuits": ("build-and-verify-a-circuit", "count-heads", "judge-a-discovery-method"),
    "Trained models": (
        "open-a-trained-model",
        "train-your-own",
        "resume-and-list-runs",
        "run-a-sweep",
    ),
    "Interpret": (
        "diagnose-a-model",
        "ablate-and-patch",
        "find-evidence-paths",
        "use-pytorch-hooks",
        "use-transformerlens",
    ),
    "Show": ("use-the-explorer", "reproduce-the-paper"),
}
"""The pages of docs/how-to by group; one that is not named stands after the groups."""
CONCEPTS = (
    *("task-and-predictors", "selective-circuit", "kinds-of-transformer"),
    *("two-ways-to-pass-evidence", "sharing-heads", "claim-1", "relative-positions"),
    *("task-variants", "circuits-for-parents"),
)
"""Pages of docs/concepts in the order of reading; one that is not named comes after these."""
RESULTS = (
    *("training-runs", "success-rates", "relative-positions", "evidence-paths"),
    *("head-counts", "claim-1"),
)
"""Pages of docs/results that come first."""
RELATIVE = ("relative_circuit", "relative_bayes", "relative_lengths", "two_layers")
"""The proofs about relative positions, in their order: they come after the others."""
LOOKED_UP = ("training", "models", "roles", "glossary", "paper_map")
CONTRIBUTING = ("architecture", "explorer-server", "reliability", "release")
MOVED = {
    "beyond": "results/head-counts",
    "claim": "results/claim-1",
    "explorer": "how-to/use-the-explorer",
    "family": "concepts/task-variants",
    "family_circuits": "concepts/circuits-for-parents",
    "field_tools": "how-to/use-pytorch-hooks",
    "ground_truth": "how-to/judge-a-discovery-method",
    "mechanism": "results/evidence-paths",
    "inference": "how-to/find-the-lag-in-your-data",
    "sweeps": "how-to/run-a-sweep",
}
"""Pages that the site once had, and where their matter is."""
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples": "examples.md",
}
"""Files and folders beside docs/, and the pages that show them."""


def menu(docs: Path, tasks: list[str]) -> list[dict[str, Any]]:
    """Lay out the menu. Pages and notebooks are found; a new one needs no entry here."""
    found = [path.stem for path in sorted(docs.glob("*.md"))]
    placed = (*START, *LOOKED_UP, *CONTRIBUTING, "report", "errata", "help")
    others = [name for name in found if name not in placed]
    return [
        {"Home": ["index.md"]},
        {"Get started": [*_pages(START, found), "examples.md"]},
        {
            "Tutorials": [
                "tutorials/index.md",
                *(f"tutorials/{path.stem}.md" for path in tutorials(docs)),
            ]
        },
        {"How-to": how_to(docs)},
        {"Concepts": [*in_folder(docs, "concepts", CONCEPTS), *_pages(others, found)]},
        {
            "Results": [
                *_pages(("report",), found),
                *in_folder(docs, "results", RESULTS),
                *_pages(("errata",), found),
                {"Proofs": ["proofs/index.md", *(f"proofs/{name}.md" for name in proofs(docs))]},
            ]
        },
        {
            "Reference": [
                *(f"reference/{name}.md" for name in ("index", *tasks, "commands")),
                *_pages(LOOKED_UP, found),
            ]
        },
        {"Help": [*_pages(("help",), found), "changelog.md"]},
        {"Contributing": ["contributing.md", *_pages(CONTRIBUTING, found), "security.md"]},
    ]


def how_to(docs: Path) -> list[Any]:
    """List the how-tos: the page that lists them, the groups, and those in no group."""
    found = {path.stem for path in (docs / "how-to").glob("*.md")} - {"index"}
    groups = [
        {title: [f"how-to/{name}.md" for name in names if name in found]}
        for title, names in HOW_TO.items()
    ]
    rest = sorted(found - {name for names in HOW_TO.values() for name in names})
    return ["how-to/index.md", *groups, *(f"how-to/{name}.md" for name in rest)]


def in_folder(docs: Path, folder: str, first: Sequence[str] = ()) -> list[str]:
    """List the pages of a folder of docs/: its index, those named first, then the others."""
    found = {path.stem for path in (docs / folder).glob("*.md")}
    before = [name for name in ("index", *first) if name in found]
    return [f"{folder}/{name}.md" for name in (*before, *sorted(found - set(before)))]


def flat(entries: Sequence[Any]) -> Iterator[str]:
    """Yield every page of a menu.

    >>> list(flat([{"Home": ["index.md"]}, {"How-to": [{"Data": ["a.md"]}]}]))
    ['index.md', 'a.md']
    """
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for inside in entry.values():
                yield from flat(inside)


def proofs(docs: Path) -> list[str]:
    """List the pages of proofs: the theorem, the lemmas that it rests on, relative positions."""
    found = {path.stem for path in (docs / "proofs").glob("*.md")} - {"index"}
    lemmas = sorted(found - {"theorem", *RELATIVE})
    return [name for name in ("theorem", *lemmas, *RELATIVE) if name in found]


def tutorials(docs: Path) -> list[Path]:
    """List the notebooks, in their order."""
    return sorted((docs / "tutorials").glob("*.ipynb"))


def source(place: str) -> str:
    """Return the document of the repository that a page of the site shows.

    >>> source("index.md"), source("glossary.md")
    ('README.md', 'docs/glossary.md')
    """
    return {page: name for name, page in PAGES.items()}.get(place, f"docs/{place}")


def pages(root: Path) -> dict[str, str]:
    """Return the text of the pages that are not in docs/, by their place in the site."""
    made = {
        place: (root / name).read_text() for name, place in PAGES.items() if name.endswith(".md")
    }
    return made | {"examples.md": examples(root / "examples"), "reference/commands.md": commands()}


def scripts(folder: Path) -> list[Path]:
    """List the example scripts, which the site has as files to download."""
    return [*sorted(folder.glob("*.py")), *sorted(folder.glob("*/*.py"))]


def examples(folder: Path) -> str:
    """Return the page that lists the example scripts, with one sentence for each."""
    lines = [
        "# Examples",
        "",
        "Scripts for what people do first, in `examples/`. The tests run each of them.",
        "`paper_in_one_file.py` is the shortest way to understand everything: plain PyTorch,",
        "from the task to a figure.",
        "",
        "| script | what it does |",
        "|---|---|",
    ]
    for path in scripts(folder):
        said = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
        place = path.relative_to(folder).as_posix()
        lines.append(f"| [`{place}`](examples/{place}) | {' '.join(said.split())} |")
    return "\n".join(lines) + "\n"


def commands() -> str:
    """Return the page with the help of every command."""
    os.environ.update(COLUMNS="88", NO_COLOR="1")
    codes = "Exit codes: 0 done, 1 a check failed, 2 bad input, 130 interrupted and resumable."
    parts = [f"# Commands\n\nThe output of `sih COMMAND --help`. {codes}"]
    for name in COMMANDS:
        said = io.StringIO()
        with redirect_stdout(said):
            main([*name.split(), "--help"])
        parts.append(f"## sih {name}\n\n```text\n{said.getvalue().strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _pages(names: Sequence[str], found: Sequence[str]) -> list[str]:
    return [f"{name}.md" for name in names if name in found]
