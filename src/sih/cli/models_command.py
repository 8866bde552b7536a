"""`sih models`: the trained models that come with the package."""

from __future__ import annotations

from sih.cli.runs_command import table_of, wide_console
from sih.runs.run_store import RunStore


def models(plain: bool = False, seed: int = 0) -> None:
    """List the trained models that come with the package, with their quality beside the reference predictors'.

    Example: sih models --plain

    `sih.load(NAME)` gives the model, `sih.open_run(NAME)` its run: task, configuration and metrics too.

    Args:
        plain: only the names, one on each line.
        seed: unused; a list is not random.
    """
    store = RunStore()
    if plain:
        print("\n".join(store.names()))
    else:
        found = [store.run(name) for name in store.names()]
        wide_console().print(
            table_of(found, "Shipped models, each trained by `sih train`; `sih runs show NAME` says how")
        )
