"""A training configuration as JSON, in the form of today and in that of before, and its digest.

Version 2 has an object for each part. Version 1, which did not name its version, had flat fields, the same ones for
every kind of model and every recipe.
"""

import hashlib
import json
from typing import Any

from sih.checks import FieldError, described
from sih.training.config import PARTS, RENAMED, TrainConfig, classes_of, names_of, renamed

VERSION = 2
WORD_AT = {
    "model": ("model", "kind"),
    "init": ("recipe", "name"),
    "optimiser": ("optimiser", "name"),
}
"""Where the words that choose a part are written: part and key."""
VERSION_1 = (
    *(
        "model",
        "lags",
        "states",
        "length",
        "heads",
        "dim",
        "qk_dim",
        "mlp_dim",
        "init",
        "max_period",
        "steps",
        "batch",
    ),
    *(
        "learning_rate",
        "betas",
        "schedule",
        "warmup",
        "held",
        "shorter",
        "seed",
        "matrix_seed",
        "concentration",
    ),
    *("matrix", "evaluate_every", "held_out", "stored"),
)
NOT_IN_ALL = {"dim": 64, "mlp_dim": None, "max_period": 8, "frozen_steps": 0}
"""Fields of version 1 that only some kinds of model or recipes have, with their defaults."""


def to_json(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration as plain numbers, words, lists and objects, for `from_json` to read."""
    flat = config.flat()
    part_of = names_of(classes_of(flat))
    values: dict[str, Any] = {"version": VERSION, **{part: {} for part in PARTS}}
    for name, value in flat.items():
        part, key = WORD_AT.get(name, (part_of.get(name), name))
        (values if part is None else values[part])[key] = _plain(value)
    return values


def from_json(values: dict[str, Any]) -> TrainConfig:
    """Read a configuration of any version."""
    version = values.get("version", 1)
    if version == 1:
        known, values = names_of(classes_of(values)), _with_used(values)
        return TrainConfig(
            **{
                name: v
                for name, v in renamed(values).items()
                if name in known or name not in NOT_IN_ALL
            }
        )
    if version != VERSION:
        raise ValueError(
            f"version {version!r} of a configuration is not known; there are 1 and {VERSION}"
        )
    words = {place: word for word, place in WORD_AT.items()}
    flat = {name: value for name, value in values.items() if name not in (*PARTS, "version")}
    for part in PARTS:
        if not isinstance(values.get(part), dict):
            raise FieldError(
                part, f"{part!r} must be an object of its fields; got {described(values.get(part))}"
            )
        flat |= {words.get((part, key), key): value for key, value in values[part].items()}
    return TrainConfig(**_with_used(flat))


def _with_used(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out of a file what no run with a given matrix uses: earlier versions let it stand beside one."""
    unused = ("concentration",) if values.get("matrix") is not None else ()
    return {name: value for name, value in values.items() if name not in unused}


def to_version_1(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration in the form of before, with later fields only where they differ from their defaults."""
    old = {new: old for old, new in RENAMED.items()}
    flat = {
        old.get(name, name): _plain(value)
        for name, value in {**NOT_IN_ALL, **config.flat()}.items()
    }
    return {
        name: value for name, value in flat.items() if name in VERSION_1 or name in config.unusual()
    }


def digest(config: TrainConfig) -> str:
    """Return eight letters and digits that stand for the configuration's content, whatever version it was read from."""
    return hashlib.sha256(json.dumps(to_version_1(config), sort_keys=True).encode()).hexdigest()[:8]


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
