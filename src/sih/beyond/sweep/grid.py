"""A grid of training configurations, in a TOML file.

    [base]                              the fields that all runs share, by their flat names
    preset = "harmonic"                 set of defaults ("paper" if not given)
    steps = 2400

    [grid]                              lists; every combination is run
    seed = [0, 1]
    lags = [[1, 2, 3], [1, 3, 4]]

A field has the name of its flag in `sih train`. A run's name, made from its content, is
the same in every grid.
"""

import itertools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sih.base.files import reading
from sih.training.config import TrainConfig
from sih.training.config_parts import RENAMED
from sih.training.presets import preset
from sih.training.runs.run_names import run_name

EXAMPLE = "e.g. [base] with steps = 2400 and [grid] with seed = [0, 1]"
MOST = 100_000
"""Largest number of runs in one file: more is probably a mistake."""


@dataclass(frozen=True)
class Grid:
    """The runs of a grid by name, in order, and the fields in which they differ."""

    runs: Mapping[str, TrainConfig]
    varied: tuple[str, ...]

    def point(self, name: str) -> dict[str, Any]:
        """Return a run's values of every field that varies."""
        flat = self.runs[name].flat()
        return {field: flat.get(field) for field in self.varied}


def read_grid(path: str | Path) -> Grid:
    """Return a grid; raise a ValueError of one line if the file is invalid."""
    path = Path(path)
    with reading(
        path,
        f"is no grid in TOML, {EXAMPLE}",
        missing=f"there is no file {path}; a grid is a TOML file, {EXAMPLE}",
    ):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    if unknown := sorted(tables.keys() - {"base", "grid"}):
        raise ValueError(
            f"{path}: there is no table {unknown[0]!r}; a grid has [base] and [grid], {EXAMPLE}"
        )
    base, lists = tables.get("base", {}), tables.get("grid", {})
    if not isinstance(base, dict) or not isinstance(lists, dict):
        raise ValueError(f"{path}: base and grid are tables, {EXAMPLE}")
    for field, values in lists.items():
        if not isinstance(values, list) or not values:
            raise ValueError(
                f"{path}: grid.{field} is a list of values, e.g. {field} = [...]; got {values!r}"
            )
        if field in base:
            raise ValueError(f"{path}: {field} is in [base] and in [grid]; leave one out")
    if (count := math.prod(map(len, lists.values()))) > MOST:
        raise ValueError(f"{path} asks for {count:,} runs; a grid has at most {MOST:,}")
    runs = {}
    for values in itertools.product(*lists.values()):
        point = dict(zip(lists, values, strict=True))
        try:
            fields = {**base, **point}
            config = preset(fields.pop("preset", "paper"), **fields)
        except (ValueError, TypeError) as error:
            place = (
                f" at {', '.join(f'{field} = {value}' for field, value in point.items())}"
                if point
                else ""
            )
            raise ValueError(f"{path}{place}: {str(error).splitlines()[0]}") from error
        runs[run_name(config)] = config
    varied = tuple(str(RENAMED.get(field, field)) for field in lists if field != "preset")
    differ = [
        field for field in _fields(runs) if field not in varied and len(_values(runs, field)) > 1
    ]
    return Grid(runs, (*varied, *differ) if "preset" in lists else varied)


def _fields(runs: Mapping[str, TrainConfig]) -> list[str]:
    return list(dict.fromkeys(field for config in runs.values() for field in config.flat()))


def _values(runs: Mapping[str, TrainConfig], field: str) -> set[Any]:
    return {config.flat().get(field) for config in runs.values()}
