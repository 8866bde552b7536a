"""Training configurations by name: what a preset sets. What is given wins.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss,
and say what they change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sih.base.errors import check_choice
from sih.training.config import TrainConfig
from sih.training.config_parts import Fields, shape_of, unfolded
from sih.training.recipes import recipe_named


def paper(given: Fields) -> Fields:
    """Sets nothing: the defaults are the paper's, d = 64, batches of 256, Adam at a constant 1e-3."""
    return {}


def paper_disentangled(given: Fields) -> Fields:
    """Sets the paper's defaults for the disentangled transformer."""
    return {"model": "disentangled"}


def paper_relative(given: Fields) -> Fields:
    """Sets the paper's defaults for relative positions, heads [1,1,1], on a matrix of uniform numbers.

    The distribution of the matrix is left to what is given: a matrix, fresh ones, or a task as a whole.
    """
    own = "matrix" in given or "task" in given or given.get("fresh", False)
    return {"model": "relative", **({} if own else {"matrix_law": "uniform"})}


def harmonic(given: Fields) -> Fields:
    """Sets what finds the circuit in minutes, with model, task and loss still the paper's (docs/training.md).

    That is a harmonic start, layers restricted to their roles at first, short sequences first, a high rate that falls.
    """
    return {"init": "harmonic", **recipe_named("harmonic", shape_of(given).kind).settings}


def auto(given: Fields) -> Fields:
    """Sets what finds the circuit on most matrices: the harmonic recipe, optimised with SOAP.

    How often, for which lags and at what cost is in docs/results/success-rates.md.
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
    """Return the fields that a preset sets beside those that are given, unfolded."""
    check_choice("preset", name, tuple(PRESETS))
    return PRESETS[name](given)


def preset(name: str, **changes: Any) -> TrainConfig:
    """Return a preset's configuration with some fields changed, by flat name.

    >>> preset("harmonic", lags=(1, 3), steps=1200).recipe.frozen_steps
    300
    """
    given = unfolded(changes)
    return TrainConfig.over(preset_fields(name, given), given)
