"""`sih models`: the trained models that come with the package."""

from __future__ import annotations

from sih.cli.runs_command import table_of, wide_console
from sih.models.storage import shipped_names
from sih.runs.run import open_run


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
        found = [open_run(name) for name in names]
        wide_console().print(
            table_of(found, "Shipped models, each trained by `sih train`; `sih runs show NAME` says how")
        )
