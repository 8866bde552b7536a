"""What `tests/golden` holds is written here: what people rely on, as small texts to be compared with.

    cd tests && python -m support.golden [FILE ...]    helps.json, say: writes these files anew, or all of `FILES`

A file is written anew only where a change is wanted. Its difference is then part of the change.
"""

from __future__ import annotations

import inspect
import json
import random
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tyro

import sih
from sih.cli import COMMANDS, main, train_command
from sih.cli.train_command import command_of
from sih.models import KINDS
from sih.training.config import TrainConfig
from sih.training.optimiser import OPTIMISERS
from sih.training.presets import PRESETS, preset
from sih.training.recipes import all_recipes
from sih.training.runs.run_names import run_name

FOLDER = Path(__file__).parents[1] / "golden"
MATRIX = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (0.4, 0.3, 0.3))
"""What the file P.csv of a printed command holds."""
PRINTED = 1000


def public_names() -> dict[str, str]:
    """Return the signature of each public function, constructor and method, and what else the classes have."""
    found: dict[str, str] = {}
    for name in sih.__all__:
        value = getattr(sih, name)
        found[name] = signature_of(value)
        if isinstance(value, type):
            found |= {f"{name}.{member}": text for member, text in members(value)}
    return found


def members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield the public members of a class that it has from `sih`, by name."""
    for name in sorted(dir(kind)):
        owner = next((base for base in kind.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not owner.__module__.startswith("sih"):
            continue
        value = inspect.getattr_static(kind, name)
        if callable(getattr(kind, name)) and not isinstance(value, type):
            yield name, signature_of(getattr(kind, name))
        else:
            yield name, "property" if not isinstance(value, type) else "class"


def signature_of(value: Callable[..., Any]) -> str:
    """Return a signature as text, types by their names alone, whatever modules they are in."""
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", str(inspect.signature(value, eval_str=True)))
    return re.sub(r"<(?:function|object) ([\w.]+) at 0x\w+>", r"<\1>", text)


def helps() -> dict[str, dict[str, str]]:
    """Return the help of every command, by its words. Of `train` with other parts, what is not in its own help."""
    found = {name: help_of(name.split()) for name in COMMANDS}
    for words in train_words():
        own = help_of(words)
        found[" ".join(words)] = {
            flag: text for flag, text in own.items() if found["train"].get(flag) != text
        }
    return found


def train_words() -> list[list[str]]:
    """List `train` with the words that choose other parts, and so other flags."""
    recipes = {(kind, one.name) for one in all_recipes() for kind in (one.kinds or tuple(KINDS))}
    models = [["train", "--model", kind, "--init", recipe] for kind, recipe in sorted(recipes)]
    return [*models, *(["train", "--optimiser", name] for name in OPTIMISERS)]


def help_of(words: list[str]) -> dict[str, str]:
    """Return what `--help` says, unwrapped: of the command as "", and of each flag, with its default."""
    found: dict[str, str] = {}

    cli = tyro.cli

    def read(command: Callable[..., Any], config: Any = None, **words: Any) -> Any:
        if config is None:  # the first of two readings, of the words that choose
            return cli(command, **words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            parser = tyro.extras.get_parser(command, config=config)
        found[""] = one_line(parser.description)
        for action in parser._actions[1:]:  # after --help
            flag = " ".join([", ".join(action.option_strings), str(action.metavar or "")]).strip()
            found[flag] = one_line(action.help)
        raise SystemExit(0)

    with patch.object(tyro, "cli", read):
        assert main([*words, "--help"]) == 0
    return found


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def printed_commands() -> list[str]:
    """Return lines of a run's name, which ends with its digest, and the command that is printed for it."""
    return [f"{run_name(config)}  {command_of(config)}" for config in many_configs()]


def many_configs() -> list[TrainConfig]:
    """Make every preset with every kind of model and some changes, and configurations of random fields."""
    draw, found = random.Random(0), dict[str, TrainConfig]()
    kinds: list[dict[str, Any]] = [{}, *({"model": kind} for kind in KINDS)]
    asked = [(name, {**kind, **change}) for name in PRESETS for kind in kinds for change in CHANGES]
    while len(found) < PRINTED:
        name, fields = asked.pop(0) if asked else ("", random_fields(draw))
        with suppress(ValueError):  # fields that do not fit together
            config = preset(name, **fields) if name else TrainConfig(**fields)
            found.setdefault(run_name(config), config)
    return list(found.values())


CHANGES: list[dict[str, Any]] = [
    {},
    {"steps": 30},
    {"lags": (1, 3), "seed": 5},
    {"init": "uniform"},
    {"init": "normal"},
    {"init": "harmonic"},
    {"optimiser": "adam"},
    {"optimiser": "soap", "batch": 16},
    {"length": 32, "steps": 3},
    {"dim": 32},
    {"fresh": True},
    {"switch_rate": 0.25, "lags": (2, 5)},
    {"held": 10, "shorter": ((20, 40),)},
    {"lag_prior": (0.5, 0.25, 0.25)},
    {"matrix": MATRIX, "states": 3},
    {"matrix_law": "uniform", "target": "distribution"},
]


def random_fields(draw: random.Random) -> dict[str, Any]:
    """Draw some fields of a configuration; half of the time they do not fit together."""
    lags = tuple(sorted(draw.sample(range(1, 9), draw.randint(1, 4))))
    choices: dict[str, tuple[float, list[Any]]] = {
        "model": (0.7, ["standard", "disentangled", "relative"]),
        "init": (0.25, sorted({recipe.name for recipe in all_recipes()})),
        "optimiser": (0.25, list(OPTIMISERS)),
        "lags": (0.8, [lags]),
        "states": (0.3, [2, 3, 5, 8]),
        "length": (0.5, [9, 16, 64, 128]),
        "heads": (0.25, [(1,), (1, 1), (1, 3, 1), (2, 2, 2, 2)]),
        "dim": (0.15, [16, 32, 64]),
        "qk_dim": (0.2, [4, 32]),
        "mlp_dim": (0.15, [None, 16]),
        "steps": (0.25, [1, 7, 100, 2400]),
        "batch": (0.25, [1, 64]),
        "learning_rate": (0.25, [1e-05, 0.002, 1.0]),
        "schedule": (0.25, ["constant", "cosine"]),
        "warmup": (0.25, [0, 5, None]),
        "betas": (0.25, [(0.9, 0.99), (0.0, 0.5)]),
        "renew_every": (0.05, [1, 5]),
        "length_schedule": (0.12, [(), None, ((3, 10),), ((10, 12), (50, 32))]),
        "max_period": (0.1, [3, 8]),
        "frozen_steps": (0.1, [0, 2, None]),
        "parts_steps": (0.08, [0, 3, None]),
        "reach": (0.1, [3, 7]),
        "start": (0.1, [True, False]),
        "offsets": (0.1, [("both", "none", "keys")]),
        "lag_prior": (0.2, [None, tuple(1 / len(lags) for _ in lags), (0.5, 0.5)]),
        "matrix": (0.1, [None, MATRIX]),
        "matrix_seed": (0.25, [0, 3]),
        "matrix_law": (0.1, ["uniform", "sparse", "near-periodic", "doubly-stochastic"]),
        "concentration": (0.25, [0.5, 1.0, 10.0]),
        "fresh": (0.1, [False, True]),
        "switch_rate": (0.1, [0.0, 0.02]),
        "evaluate_every": (0.25, [10, 250]),
        "held_out": (0.25, [16, 512]),
        "seed": (0.25, [0, 1, 2**40]),
        "stored": (0.25, ["float32", "float16"]),
        "target": (0.1, ["sampled", "distribution"]),
    }
    return {
        name: draw.choice(values)
        for name, (chance, values) in choices.items()
        if draw.random() < chance
    }


class AskedError(Exception):
    """Carries the configuration that a command was about to train."""


def asked_by(command: str) -> TrainConfig:
    """Run a printed command up to the point at which it would begin a run. It may read P.csv, of `MATRIX`."""

    def begin(config: TrainConfig, *_: object, **__: object) -> None:
        raise AskedError(config)

    with patch.object(train_command, "RunWriter", begin):
        try:
            code = main(shlex.split(command)[1:])
        except AskedError as asked:
            config: TrainConfig = asked.args[0]
            return config
    raise AssertionError(f"{command} ended with {code}")


def as_text(name: str) -> str:
    """Return what a file of `tests/golden` is to hold."""
    if name == "printed_commands.txt":
        return "\n".join(printed_commands()) + "\n"
    return (
        json.dumps(
            {"public_names.json": public_names, "helps.json": helps}[name](),
            indent=1,
            ensure_ascii=False,
        )
        + "\n"
    )


FILES = ("public_names.json", "helps.json", "printed_commands.txt")

if __name__ == "__main__":
    for name in sys.argv[1:] or FILES:
        (FOLDER / name).write_text(as_text(name), encoding="utf-8")
