"""Presets: training configurations by name. Given fields take precedence.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss.
Their docstrings name the changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sih.base.errors import check_choice
from sih.training.config import TrainConfig
from sih.training.config_parts import Fields, shape_of, unfolded
from sih.training.recipes import recipe_named


def paper(given: Fields) -> Fields:
    """Return no fields: the defaults are the paper's.

    These are d = 64, batches of 256, and Adam at a constant 1e-3.
    """
    return {}


def paper_disentangled(given: Fields) -> Fields:
    """Return the paper's settings for the disentangled transformer."""
    return {"model": "disentangled"}


def paper_relative(given: Fields) -> Fields:
    """Return the paper's settings for relative positions.

    These are heads [1,1,1] and a matrix of uniform numbers. The distribution of the
    matrix is left out if a matrix, fresh ones, or a task as a whole is given.
    """
    own = "matrix" in given or "task" in given or given.get("fresh", False)
    return {"model": "relative", **({} if own else {"matrix_law": "uniform"})}


def harmonic(given: Fields) -> Fields:
    """Return settings that find the circuit in minutes: the harmonic recipe.

    Model, task and loss are the paper's. The changes are a harmonic start, layers
    restricted to their roles at first, short sequences first, and a high learning rate
    that falls (docs/training.md).
    """
    return {"init": "harmonic", **recipe_named("harmonic", shape_of(given).kind).settings}


def auto(given: Fields) -> Fields:
    """Return settings that find the circuit on most matrices: `harmonic` with SOAP.

    docs/results/success-rates.md says how often, for which lags and at what cost.
    """
    recipe = recipe_named("harmonic", shape_of(given).kind)
    return {**harmonic(given), "optimiser": "soap", **recipe.with_soap}


PRESETS: dict[str, Callable[[Fields], Fields]] = {
    "paper": paper,
    "paper-disentangled": paper_disentangled,
    "paper-relative": paper_relative,
    "harmonic": harmonic,
    "auto": auto,
}
"""Every preset by its name."""


def preset_fields(name: str, given: Fields) -> Fields:
    """Return the fields of a preset and the given ones, unfolded."""
    check_choice("preset", name, tuple(PRESETS))
    return PRESETS[name](given)


def preset(name: str, **changes: Any) -> TrainConfig:
    """Return a preset's configuration with some fields changed, by flat name.

    >>> preset("harmonic", lags=(1, 3), steps=1200).recipe.frozen_steps
    300
    """
    given = unfolded(changes)
    return TrainConfig.over(preset_fields(name, given), given)
