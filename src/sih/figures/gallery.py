"""Which function draws which data: the one whose argument `data` is of its type. A form is a file of this folder."""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, get_type_hints

from matplotlib.figure import Figure

from sih import figures
from sih.experiments.table import EXPERIMENTS

Draw = Callable[..., Figure]


def all_forms() -> dict[type, Draw]:
    """List the functions `draw_...(data)` that the files of this folder define, by the type that they draw."""
    names = [
        found.name
        for found in pkgutil.iter_modules(figures.__path__)
        if found.name not in ("gallery", "drawn")
    ]
    modules = [importlib.import_module(f"{figures.__name__}.{name}") for name in names]
    members = [
        member
        for module in modules
        for name, member in vars(module).items()
        if name.startswith("draw_")
    ]
    return {hints["data"]: draw for draw in members if "data" in (hints := get_type_hints(draw))}


FORMS = all_forms()
FIGURES: dict[str, Draw] = {
    name: FORMS[experiment.data] for name, experiment in EXPERIMENTS.items()
}
"""What draws each experiment's data, by the experiment's name and in its order."""


def draw(data: Any, **options: Any) -> Figure:
    """Draw data of a type that one of the forms is for, or of a kind of it."""
    form = next((FORMS[kind] for kind in type(data).__mro__ if kind in FORMS), None)
    if form is None:
        raise ValueError(f"there is no figure of a {type(data).__name__}")
    return form(data, **options)
