"""`sih models`: the trained models that come with the package."""

from __future__ import annotations

from rich.console import Console

from sih.cli.runs import table_of
from sih.models.storage import shipped_names
from sih.runs import open_run


def models(plain: bool = False, seed: int = 0) -> None:
    """List the trained models that come with the package, with their quality beside the reference predictors'.

    Example: sih models --plain

    `sih.load(NAME)` gives the model, `sih.open_run(NAME)` its run: task, configuration and metrics too.

    Args:
        plain: only the names, one a line.
        seed: unused; a list is not random.
    """
    names = shipped_names()
    if plain:
        print("\n".join(names))
    else:
        Console().print(table_of([open_run(name) for name in names], "Shipped models, each trained by `sih train`"))
