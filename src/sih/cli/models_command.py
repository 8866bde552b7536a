"""`sih models`: the trained models that ship with the package."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console

from sih.cli.printing import plain_console
from sih.cli.run_tables import WIDTH, Row, fresh_quality, print_fitting, print_ways, shape_of
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.fast.choice import fastest
from sih.report.model_zoo import listing, model_entry, write_page
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore


def models(
    plain: bool = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
    page: Path | None = None,
    machine: bool = False,
) -> None:
    """List the trained models that ship with the package: how each was trained and how
    good it is.

    Example: sih models --json

    KL/ML is the mean KL to the true distribution divided by maximum likelihood's, on
    fresh sequences. `sih.load(NAME)` returns the model, `sih.open_run(NAME)` its run:
    task, configuration and metrics.

    Args:
        plain: Print only the names, one per line.
        as_json: Print one JSON document with every number.
        page: Write the page of the model zoo to this Markdown file; with a new model,
            read its last layer first.
        machine: Print instead which backend computes models on this machine, with
            measured times.
    """
    store = RunStore()
    if machine:
        print("\n".join(_machine()))
    elif as_json:
        print(listing("models", [model_entry(store.run(name)) for name in store.names()]))
    elif page is not None:
        write_page(page, [store.run(name) for name in store.names()])
        print(f"wrote {page}")
    elif plain:
        print("\n".join(store.names()))
    else:
        show_models([store.run(name) for name in store.names()], plain_console(WIDTH, wrap=False))


def show_models(found: Sequence[Run], console: Console) -> None:
    """Print a table with one row per model, as wide as the console, and a legend."""
    title = "Shipped models: KL/ML on fresh sequences ± two standard errors"
    print_fitting([_row(run) for run in found], title, console)
    print_ways(found, console)
    console.print(
        "`sih runs show NAME` has more: the command that trains it, KL/ML by tokens seen, its heads"
    )


def _row(run: Run) -> Row:
    row = {
        **shape_of(run),
        "steps": f"{run.config.optimiser.steps:,}",
        "KL": "",
        "ML": "",
        "BMA": "",
    }
    if run.evaluation is not None:
        means = {"KL": run.evaluation.kl, "ML": run.evaluation.ml, "BMA": run.evaluation.bma}
        row |= {name: f"{found.mean:.4f}" for name, found in means.items()}
    return {**row, **fresh_quality(run)}


def _machine() -> list[str]:
    """Return lines with the backend of each kind of model on this machine, and its
    measured time.
    """
    found = fastest()
    took = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in found.seconds.items())
    usual = "compiled" if found.compiled else "fused"
    return [
        f"processor: {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}",
        f"standard and relative models: backend {usual!r} in float32 on a CPU, 'fused' elsewhere",
        f"  attention of the paper's size, forward and backward, on one thread: {took or 'not measured: ' + found.why}",
        f"disentangled models: backend {DisentangledTransformer.paths[0]!r}",
        "`model(tokens, path=...)` chooses another backend; SIH_COMPILED=0 disables the compiled one",
    ]
