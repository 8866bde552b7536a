"""The flags of `sih train`: read in two stages, and printed again.

The words --preset, --model, --init and --optimiser choose the parts of a configuration,
and so the set of flags. tyro reads them first and alone. Then it reads all flags, with
the preset's fields as their defaults.
"""

from __future__ import annotations

import io
import itertools
import shlex
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from typing import Any

import tyro

from sih.base.record import field_names
from sih.cli.matrix_flag import read_matrix
from sih.models import KINDS, ModelShape
from sih.training.config import TrainConfig
from sih.training.config_file import NOT_IN_EVERY_KIND
from sih.training.config_parts import CHOICES, RENAMED, RUN_FIELDS, parts_of
from sih.training.presets import PRESETS, preset_fields


@dataclass(frozen=True)
class Choices:
    """The flags that determine the set of other flags, and their defaults."""

    preset: str = "paper"
    model: str | None = None
    init: str | None = None
    optimiser: str | None = None
    matrix: str | None = None
    """The matrix; its size is the default of --states."""
    states: str | None = None
    fresh: bool = False


def defaults(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments that a command line chooses, and the remaining words.

    A flag of another kind of model or recipe is omitted, with a remark.
    """
    words = _by_new_names(words)
    choices = _choices(words)
    asked = {word: getattr(choices, word) for word in CHOICES}
    given = {word: value for word, value in asked.items() if value is not None}
    if choices.matrix is not None:
        matrix = read_matrix(choices.matrix)
        given |= {"matrix": matrix, "states": len(matrix)}
        if choices.states not in (None, str(len(matrix))):
            has = f"{choices.matrix}, which has {len(matrix)} states"
            raise ValueError(f"--states {choices.states} does not fit {has}; leave one out")
    elif choices.fresh:
        given["fresh"] = True
    base = preset_fields(choices.preset, given)
    parts = parts_of(given, base)
    for name in sorted(NOT_IN_EVERY_KIND):
        if not any(hasattr(part, name) for part in parts.values()):
            words = _without(words, name.replace("_", "-"), parts)
    _check_kind_has(words, parts["model"])
    own = {name: base[name] for name in RUN_FIELDS if name in base}
    return {"preset": choices.preset, **parts, **own}, words


def command_of(config: TrainConfig) -> str:
    """Return the command that trains a configuration: every flag that differs from the
    paper's setting.

    >>> command_of(TrainConfig(lags=(1, 3), heads=(1, 1, 1), steps=2400))
    'sih train --lags 1 3 --heads 1 1 1 --steps 2400'
    """
    if config.task.lags:
        return shlex.join(["sih", "train", *_flags(config.unusual())])
    changed = (f"{name}={value!r}" for name, value in config.unusual().items() if name != "own")
    fields = ", ".join(["task=task", *changed])
    return (
        f"sih.train({fields}) in Python: {config.task.in_words} is an object, no command names it"
    )


def explicit_command(config: TrainConfig) -> str:
    """Return the same command from the nearest preset, with lags, heads, length and
    seed written out.

    >>> explicit_command(TrainConfig(steps=2400))
    'sih train --preset paper --lags 1 2 3 --heads 1 3 1 --length 128 --seed 0 --steps 2400'
    """
    flat = config.flat()
    names = ("lags", "heads", "length", "seed")
    always = {name: flat[name] for name in names if flat.get(name, ()) != ()}
    if config.model.kind != CHOICES["model"]:
        always["model"] = config.model.kind
    ways = {name: _changes(name, config, always) for name in PRESETS if config.task.lags}
    found = {name: changes for name, changes in ways.items() if changes is not None}
    if not found:
        return command_of(config)
    nearest = min(found, key=lambda name: len(found[name]))
    return shlex.join(["sih", "train", "--preset", nearest, *_flags(always | found[nearest])])


def _changes(preset: str, config: TrainConfig, given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the fields to change in a preset with some fields given, None if it cannot
    yield the configuration.
    """
    with suppress(ValueError):
        usual = TrainConfig.over(preset_fields(preset, given), given).flat()
        flat = config.flat()
        differ = [name for name in flat if name not in usual or usual[name] != flat[name]]
        found = {name: flat[name] for name in differ}
        asked = {**given, **found}
        if TrainConfig.over(preset_fields(preset, asked), asked) == config:
            return found
    return None


def _flags(fields: dict[str, Any]) -> list[str]:
    """Return flags and their words, for fields by flat name."""
    return [word for name, value in fields.items() for word in _flag(name, value)]


def _flag(name: str, value: Any) -> list[str]:
    """Return the words that set a field; True or False is in the flag's name."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if name == "matrix":
        return [f"--{flag}", "P.csv"]
    if not isinstance(value, tuple):
        return [f"--{flag}", str(value)]
    pairs = any(isinstance(item, tuple) for item in value)
    return [f"--{flag}", *map(str, itertools.chain.from_iterable(value) if pairs else value)]


def _check_kind_has(words: list[str], model: ModelShape) -> None:
    """Raise a ValueError about a flag that only other kinds of model have."""
    has = {kind: set(field_names(each.Shape)) for kind, each in KINDS.items()}
    names = (word.partition("=")[0].removeprefix("--").removeprefix("no-") for word in words)
    said = {name.replace("-", "_") for name in names}
    for name in sorted(
        said & set().union(*has.values()) - has[model.kind] - NOT_IN_EVERY_KIND.keys()
    ):
        flag, others = name.replace("_", "-"), ", ".join(kind for kind in has if name in has[kind])
        raise ValueError(f"--{flag} is for --model {others}; got --model {model.kind}")


def _choices(words: list[str]) -> Choices:
    """Return the flags that choose. Their errors are reported when all flags are read."""
    try:
        with redirect_stderr(io.StringIO()):
            found, _ = tyro.cli(Choices, args=words, return_unknown_args=True, add_help=False)
    except SystemExit:
        return Choices()
    return found


def _by_new_names(words: list[str]) -> list[str]:
    """Return a command line with old names of flags replaced, with one remark each."""
    said = {word.partition("=")[0] for word in words}
    for old, new in RENAMED.items():
        flag = new.replace("_", "-")
        if {f"--{old}", f"--{flag}"} <= said:
            raise ValueError(f"--{old} is the old name of --{flag}; leave one out")
        words = [_renamed(word, f"--{old}", f"--{flag}") for word in words]
    return words


def _renamed(word: str, old: str, new: str) -> str:
    flag, equals, value = word.partition("=")
    return f"{new}{equals}{value}" if flag == old else word


def _without(words: Iterable[str], flag: str, parts: dict[str, Any]) -> list[str]:
    """Return the words without a flag and its values, with a remark if it was there."""
    kept, dropping, dropped = [], False, False
    for word in words:
        if word.startswith("--"):
            dropping = word.partition("=")[0] == f"--{flag}"
            dropped = dropped or dropping
        if not dropping:
            kept.append(word)
    if dropped:
        of = f"{parts['model'].kind}, {parts['recipe'].name}"
        print(f"sih: --{flag} means nothing to {of}", file=sys.stderr)
    return kept
