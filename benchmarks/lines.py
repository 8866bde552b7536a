"""How many lines of source there are now and were at an older commit, room by room, and whose the difference is.

    python -m benchmarks.lines OLD          e.g. 24e4746, the last commit before the rooms of docs/architecture.md

Rule. Every line of difference was added or removed by a commit since OLD, so that the differences of all commits add
up to the whole. A commit is the house's if it moved walls or made the same in fewer lines: those up to `END` but for
the words of `NOT_YET`, and later ones that begin with a word of `STILL`. All others came with capabilities that OLD did
not have, and count as `others`, also where they did both. The column `house` is OLD and the house's commits: lines for
the capabilities of OLD. Code lines are not blank, no comment and no docstring. C, JavaScript and CSS are not counted.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter

SOURCE = "src/sih"
END = "506bc9e"
"""The last commit of the house's own work."""
NOT_YET = ("Claim 1", "Attention in C", "Fast:")
STILL = (
    *(
        "House:",
        "Annotations are evaluated",
        "Experiments, figures, report",
        "Experiments over matrices",
    ),
    *(
        "Types of tokens",
        "Analysis, models, construction: no",
        "Tables in fewer",
        "Figures: one way",
    ),
    *("Circuits: what is asked in fewer", "Tensors of tokens"),
)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def main(old: str) -> None:
    commits = [
        line.split(maxsplit=1)
        for line in git("log", "--format=%h %s", "--reverse", f"{old}..").splitlines()
    ]
    before_end = set(git("log", "--format=%h", f"{old}..{END}").split())
    was, now = size_at(old), size_at("HEAD")
    house, others = Counter(was), Counter[str]()
    for commit, subject in commits:
        early = commit in before_end and not subject.startswith(NOT_YET)
        whose = house if early or subject.startswith(STILL) else others
        whose.update(difference(commit))
    columns = "".join(f"{word:>10}" for word in (old[:8], "house", "others", "now"))
    print(f"{'lines':16}{columns}   code lines{columns}")
    for room in ["", *sorted({name.partition(",")[0] for name in (*was, *now)} - {""})]:
        cells = [
            "".join(f"{size[room + word]:>10,}" for size in (was, house, others, now))
            for word in ("", ", code")
        ]
        print(f"{room or 'all':16}{cells[0]}             {cells[1]}")


def size_at(commit: str) -> Counter[str]:
    """Count the lines of each room, `"models"`, its code lines, `"models, code"`, and those of all, `""`."""
    files = git("ls-tree", "-r", "--name-only", commit, SOURCE).split()
    return sum((size_of(commit, path) for path in files if path.endswith(".py")), Counter[str]())


def difference(commit: str) -> Counter[str]:
    found = Counter[str]()
    for path in git(
        "diff-tree", "-r", "--no-renames", "--name-only", "--no-commit-id", commit, SOURCE
    ).split():
        if path.endswith(".py"):
            found.update(size_of(commit, path))
            found.subtract(size_of(f"{commit}^", path))
    return found


def size_of(commit: str, path: str) -> Counter[str]:
    """Count one file, which may not be there."""
    found = subprocess.run(["git", "show", f"{commit}:{path}"], capture_output=True, text=True)
    if found.returncode:
        return Counter()
    lines, tree = found.stdout.splitlines(), ast.parse(found.stdout)
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    inside = {n for node in texts for n in range(node.lineno, (node.end_lineno or 0) + 1)}
    code = sum(
        n not in inside and line.strip() != "" and line.strip()[0] != "#"
        for n, line in enumerate(lines, 1)
    )
    room = path.removeprefix(f"{SOURCE}/").split("/")[0].removesuffix(".py")
    return Counter({"": len(lines), ", code": code, room: len(lines), f"{room}, code": code})


if __name__ == "__main__":
    main(sys.argv[1])
