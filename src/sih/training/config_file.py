"""A training configuration as JSON, in any version, and its digest.

Version 2 has an object for each part. Version 1, which did not name its version, had
flat fields, the same for every kind of model and recipe. A digest is of that form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sih.base.errors import FieldError, described
from sih.base.record import to_json as plain
from sih.training.config import TrainConfig
from sih.training.config_parts import RENAMED, RUN_FIELDS, SECTIONS, unfolded

VERSION = 2
VERSION_1 = frozenset(
    {
        *("model", "lags", "states", "length", "matrix", "matrix_seed", "concentration"),
        *("heads", "dim", "qk_dim", "mlp_dim", "init", "max_period", "held", "shorter"),
        *("steps", "batch", "learning_rate", "betas", "schedule", "warmup"),
        *("seed", "evaluate_every", "held_out", "stored"),
    }
)
"""The fields of version 1, by their names of that time."""
NOT_IN_EVERY_KIND = {"dim": 64, "mlp_dim": None, "max_period": 8, "frozen_steps": 0}
"""Fields of version 1 that only some kinds of model or recipes have, with defaults."""


def to_json(config: TrainConfig) -> dict[str, Any]:
    """Return the configuration as plain JSON, for `from_json` to read."""
    values: dict[str, Any] = {"version": VERSION}
    for name, part in SECTIONS.items():
        record = getattr(config, name)
        word = {part.tag: getattr(record, part.tag)} if part.tag else {}
        values[name] = {**word, **plain(record)}
    return {**values, **{name: getattr(config, name) for name in RUN_FIELDS}}


def from_json(values: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration in JSON of any version."""
    version = values.get("version", 1)
    if version not in (1, VERSION):
        says = f"version {version!r} of a configuration is not known"
        raise ValueError(f"{says}; there are 1 and {VERSION}")
    given = values if version == 1 else _of_parts(values)
    fields = unfolded({name: value for name, value in given.items() if name != "version"})
    if fields.get("matrix") is not None:  # earlier versions allowed it beside one
        fields.pop("concentration", None)
    if version == VERSION:
        return TrainConfig.over({}, fields)
    some = {name: fields.pop(name) for name in NOT_IN_EVERY_KIND if name in fields}
    return TrainConfig.over(some, fields)  # those that the kind of model and the recipe have


def _of_parts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's fields by their flat names, with the words that chose the
    parts.
    """
    found = {name: value for name, value in values.items() if name not in SECTIONS}
    for name, part in SECTIONS.items():
        given = values.get(name)
        if not isinstance(given, dict):
            says = f"{name!r} must be an object of its fields"
            raise FieldError(name, f"{says}; got {described(given)}")
        found |= {part.word if key == part.tag else key: given[key] for key in given}
    return found


def to_version_1(config: TrainConfig) -> dict[str, Any]:
    """Return the form of version 1, with later fields only if they are not the
    default.
    """
    old_names = {new: old for old, new in RENAMED.items()}
    unusual = config.unusual()
    found = {}
    for name, value in {**NOT_IN_EVERY_KIND, **config.flat()}.items():
        old = old_names.get(name, name)
        if old in VERSION_1 or name in unusual:
            found[old] = plain(value)
    return found


def digest(config: TrainConfig) -> str:
    """Return eight letters and digits that identify the configuration's content."""
    text = json.dumps(to_version_1(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
