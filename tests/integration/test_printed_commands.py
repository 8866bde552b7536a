"""Every command and every line of Python that a document prints: read here, and run, at small sizes, among the slow."""

from __future__ import annotations

import doctest
import importlib
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest
import torch
from support.commands import run
from support.printed_commands import DOCUMENTS, ROOT, blocks, commands, in_prose, is_whole

import sih
from sih.cli import COMMANDS, STARTED, _parse, main
from sih.report.subjects import figures

DEAR = {
    r"reproduce\b": "minutes; integration/test_report_commands.py runs it whole",
    r"explore(?!.*--export)": "serves until it is stopped; tests/browser and unit/explorer ask it everything",
    r"figure few_heads": "minutes; unit/beyond/shared_heads/test_few_heads.py computes it small and draws it",
    r"runs formation runs/plain": "needs weights of a long run; unit/attention/test_circuit_formation.py",
    r"sweep .*--ray": "needs Ray; tests/tools/test_ray_sweep.py runs a cluster",
    r"claim --matrix out/search/worst.csv": "what the search finds has other lags at small sizes",
    r"infer .*vega_datasets": "needs a package that is not ours",
    r"[a-z]+ --(keep-every|parents)( N)?$": "a flag in prose, without its value",
}
"""Commands that are read and not run, and why."""
SMALL: dict[str, dict[str, list[str]]] = {
    "claim": {"--matrices": ["2"], "--states": ["3"]},
    "claim search": {"--descents": ["4"], "--steps": ["3"], "--states": ["4"], "--starts": ["2"]},
    "claim rates": {"--length": ["12"], "--sequences": ["64"]},
    "claim beta": {"--lengths": ["8", "12"], "--sequences": ["64"]},
    "construct": {"--length": ["24"]},
    "explore": {"--length": ["16"], "--sequences": ["1"]},
    "train": {
        "--steps": ["6"],
        "--batch": ["4"],
        "--length": ["16"],
        "--held-out": ["8"],
        "--evaluate-every": ["3"],
        "--frozen-steps": ["2"],
        "--length-schedule": ["3", "8"],
    },
}
"""Sizes to run commands with: in the place of printed ones, and besides them where the command has the flag."""
GRID = {
    "steps = 2400": "steps = 4\nbatch = 4\nheld_out = 8\nfrozen_steps = 1\nlength_schedule = []",
    "length = 64": "length = 16",
}
"""The same for the grids of documents."""

READERS = {
    "table.csv": "\n".join(
        ",".join(str(i - k if i > 1 else -1) for i in range(17)) for k in (1, 2)
    ),
    "weather.csv": "weather\n"
    + "\n".join(("rain", "sun", "fog")[i * i % 7 % 3] for i in range(60)),
}
"""Files that a reader has."""


def _name(words: list[str]) -> str:
    return " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]


@cache
def _flags(name: str) -> frozenset[str]:
    """The flags of a command, from its help: those of all kinds and recipes, and of all figures."""
    asked = [
        ["--model", model, "--init", init]
        for model in ("standard", "disentangled")
        for init in ("uniform", "harmonic")
    ]
    asked.append(["--model", "relative"])
    said = io.StringIO()
    chosen = {"train": asked, "figure": [[], *([figure] for figure in figures())]}
    for words in chosen.get(name, [[]]):
        with redirect_stdout(said):
            assert main([*name.split(), *words, "--help"]) == 0
    return frozenset(re.findall(r"--[a-z][\w-]*", said.getvalue()))


def _small(words: list[str]) -> list[str]:
    """Put small sizes into a command line."""
    name = _name(words)
    sizes = {
        flag: size
        for flag, size in SMALL.get(name, {}).items()
        if flag in _flags(name) and "--parents" not in words
    }
    kept: list[str] = []
    flag = ""
    for word in words:
        flag = word if word.startswith("--") else flag
        if flag not in sizes:
            kept.append(word)
    return [*kept, *(word for flag, size in sizes.items() for word in (flag, *size))]


def _printed() -> list[tuple[str, list[str]]]:
    return [
        (document.relative_to(ROOT).as_posix(), words)
        for document in DOCUMENTS
        for words in commands(document)
    ]


@pytest.mark.parametrize(
    ("document", "words"),
    _printed(),
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_printed_command_is_understood(
    document: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = _name(words)
    assert name in COMMANDS, f"{document}: sih {' '.join(words)}"
    given = {word for word in words if word.startswith("--")} - {"--help"}
    assert given <= _flags(name), (
        f"{document}: {sorted(given - _flags(name))} of sih {' '.join(words)}"
    )
    if is_whole(words) and _dear(words) is None:
        monkeypatch.setattr("sih.cli.check_place", lambda place: None)
        module, function = COMMANDS[name][0].split(":")
        found = importlib.import_module(module)
        command: Callable[..., int | None] = getattr(found, function)
        rest = words[len(name.split()) :]
        command, rest = found.start_from(rest) if name in STARTED else (command, rest)
        assert callable(_parse(command, name, rest))


def test_every_flag_in_prose_is_one_of_a_command() -> None:
    known = frozenset().union(*map(_flags, COMMANDS)) | {
        "--help",
        "--version",
        "--held",
        "--shorter",
    }
    for script in ("__main__.py", "mutation.py"):
        known |= set(re.findall(r"--[a-z]+", (ROOT / "tests" / "torture" / script).read_text()))
    others = re.compile(r"^(pip|pip-audit|pytest|python|make|mkdocs|ray) ")
    for document in DOCUMENTS:
        for words in in_prose(document):
            given = (
                set() if others.match(words) else set(re.findall(r"(?<!\S)--[a-z][\w-]*", words))
            )
            assert given <= known, f"{document.name}: {sorted(given - known)} in {words!r}"


def _dear(words: list[str]) -> str | None:
    if " ".join(words) in COMMANDS.keys() - {"models"}:
        return "the name of a command in prose, without what it needs"
    return next((why for pattern, why in DEAR.items() if re.match(pattern, " ".join(words))), None)


def test_what_is_dear_is_printed_somewhere() -> None:
    lines = [" ".join(words) for _, words in _printed()]
    assert [pattern for pattern in DEAR if not any(re.match(pattern, line) for line in lines)] == []


WITH_COMMANDS = [
    document for document in DOCUMENTS if any(is_whole(words) for words in commands(document))
]


@pytest.mark.slow
@pytest.mark.parametrize("document", WITH_COMMANDS, ids=lambda document: document.name)
def test_printed_commands_run(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of one document one after the other in one folder, as a reader would, at small sizes."""
    monkeypatch.chdir(tmp_path)
    for text in blocks(document, "toml"):
        titled = re.match(r"# (\S+\.toml)\n", text)
        for printed, small in GRID.items():
            text = text.replace(printed, small)
        Path(titled[1] if titled else "grid.toml").write_text(text)
    for name, text in READERS.items():
        Path(name).write_text(text)
    for words in commands(document):
        if is_whole(words) and _dear(words) is None:
            code, _, said = run(capsys, *_small(words))
            fine = (
                (0, 1) if "--statement" in words else (0,)
            )  # 1 where so small a search finds a false statement out
            assert code in fine, f"sih {' '.join(_small(words))}: {said}"


def _python() -> list[Path]:
    """Documents with Python that no output stands below: of the others test_page_outputs.py has all."""
    return [
        document
        for document in DOCUMENTS
        if blocks(document, "python") and not blocks(document, "text")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("document", _python(), ids=lambda path: path.name)
def test_printed_python_runs(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The blocks of one document one after the other, as a reader would (those with TransformerLens: tests/tools)."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"sih": sih, "torch": torch}
    for code in blocks(document, "python"):
        if code.startswith(">>> "):
            example = doctest.DocTestParser().get_doctest(code, names, document.name, None, None)
            assert doctest.DocTestRunner().run(example).failed == 0
        elif "lens" not in code:
            exec(compile(code, document.name, "exec"), names)
