"""Training configurations by name. A preset is a function that returns fields; what it is given wins.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss, and say what they change.
"""

from collections.abc import Callable
from typing import Any

from sih.checks import check_choice
from sih.training.config import TOP, WORDS, TrainConfig, classes_of, names_of, renamed, whole_parts
from sih.training.recipes import recipe_named


def paper(**changes: Any) -> dict[str, Any]:
    """Sets nothing: the defaults are the paper's, d = 64, batches of 256, Adam at a constant 1e-3."""
    return changes


def paper_disentangled(**changes: Any) -> dict[str, Any]:
    """Sets the paper's defaults for the disentangled transformer."""
    return {"model": "disentangled", **changes}


def paper_relative(**changes: Any) -> dict[str, Any]:
    """Sets the paper's defaults for relative positions, heads [1,1,1], on a matrix of uniform numbers.

    The law of the matrix is left to what is given: a matrix, fresh ones, or a task as a whole.
    """
    own = "matrix" in changes or "task" in changes or changes.get("fresh", False)
    law = {} if own else {"matrix_law": "uniform"}
    return {"model": "relative", **law, **changes}


def harmonic(**changes: Any) -> dict[str, Any]:
    """Sets what finds the circuit in minutes, with model, task and loss still the paper's (docs/training.md).

    That is a harmonic start, layers that keep to their parts at first, short sequences first, a high rate that falls.
    """
    return _by_recipe({}, changes)


def auto(**changes: Any) -> dict[str, Any]:
    """Sets what finds the circuit on most matrices: the harmonic recipe, moved by SOAP.

    How often, for which lags and at what cost is in docs/training.md.
    """
    recipe = recipe_named("harmonic", _kind(changes))
    return _by_recipe({"optimiser": "soap", **recipe.with_soap}, changes)


def _by_recipe(more: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Set what goes with the harmonic recipe, and more, but for fields of parts that are given whole or lack them."""
    whole = whole_parts(changes)
    start = {} if "recipe" in whole else {"init": "harmonic"}
    part_of = names_of(classes_of({**start, **more, **changes}))
    free = {name for name, part in part_of.items() if part not in whole}
    settings = {**recipe_named("harmonic", _kind(changes)).settings, **more}
    kept = {name: value for name, value in settings.items() if name in (*free, *WORDS, *TOP)}
    return {**start, **kept, **changes}


def _kind(changes: dict[str, Any]) -> str:
    """Return the kind of model that fields ask for, by its word or by a shape."""
    given = {"model": changes["model"]} if "model" in changes else {}
    shape: Any = classes_of(given)["model"]
    kind: str = shape.kind
    return kind


PRESETS: dict[str, Callable[..., dict[str, Any]]] = {
    "paper": paper,
    "paper-disentangled": paper_disentangled,
    "paper-relative": paper_relative,
    "harmonic": harmonic,
    "auto": auto,
}
"""Every preset by its name."""
SEEN = {
    "paper": "lags 1 2 3: 0.73 and 1.15 x ML at length 32 after 30,000 steps (two seeds), 1.76 and 1.88 at 64 after "
    "20,000, 1.08 at 128 after 50,000",
    "paper-disentangled": "1.35 x ML and falling at length 32 after 20,000 steps, lags 1 2 3",
    "paper-relative": "a held-out 0.91 x ML at length 64 after 2,500 steps of 128 sequences, lags 1 2 3 (one seed)",
    "harmonic": "a held-out 0.80 to 1.09 x ML at length 128 after 3,600 steps or fewer, three lags, but not on every "
    "matrix",
    "auto": "a held-out 0.55 to 1.17 x ML on 178 of 180 runs at lengths 32, 64 and 128, three and five lags, fresh "
    "matrices",
}
"""What each was seen to reach (docs/training.md): the paper's on fresh sequences, the others on the held-out ones."""


def preset_fields(name: str, **changes: Any) -> dict[str, Any]:
    """Return the fields that a preset sets, by flat name, with some changed."""
    check_choice("preset", name, tuple(PRESETS))
    return PRESETS[name](**renamed(changes))


def preset(name: str, **changes: Any) -> TrainConfig:
    """Return a preset's configuration with some fields changed, by flat name.

    >>> preset("harmonic", lags=(1, 3), steps=1200).recipe.frozen_steps
    300
    """
    return TrainConfig(**preset_fields(name, **changes))
