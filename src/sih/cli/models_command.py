"""`sih models`: the trained models that come with the package."""

from collections.abc import Sequence

import torch
from rich.console import Console

from sih.cli.printing import plain_console
from sih.cli.run_tables import WIDTH, Row, fresh_quality, print_fitting, print_ways, shape_of
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.fast.choice import fastest
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore


def models(plain: bool = False, machine: bool = False) -> None:
    """List the trained models that come with the package: how each was trained and how good it is.

    Example: sih models --plain

    KL/ML is the mean KL to the true distribution divided by maximum likelihood's, on fresh sequences.
    `sih.load(NAME)` gives the model, `sih.open_run(NAME)` its run: task, configuration and metrics too.

    Args:
        plain: only the names, one on each line.
        machine: how models compute on this machine, instead: the ways, the seconds each was measured to take.
    """
    store = RunStore()
    if machine:
        print("\n".join(_machine()))
    elif plain:
        print("\n".join(store.names()))
    else:
        show_models([store.run(name) for name in store.names()], plain_console(WIDTH, wrap=False))


def show_models(found: Sequence[Run], console: Console) -> None:
    """Print a table with one row for each model, as wide as the console, and what its words stand for."""
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
    """Say in lines which path each kind of model takes here, and what was measured."""
    found = fastest()
    took = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in found.seconds.items())
    usual = "compiled" if found.compiled else "fused"
    return [
        f"processor: {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}",
        f"standard and relative models: path {usual!r} in float32 on a CPU, 'fused' elsewhere",
        f"  attention of the paper's size, forward and backward, on one thread: {took or 'not measured: ' + found.why}",
        f"disentangled models: path {DisentangledTransformer.paths[0]!r}",
        "`model(tokens, path=...)` takes another path; SIH_COMPILED=0 does without the compiled one",
    ]
