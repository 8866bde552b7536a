"""`sih runs formation`: the steps at which the circuit appeared in a run."""

import tyro

from sih.attention.circuit_formation import formation, keep_formation
from sih.cli.printing import plain_console
from sih.training.runs.evaluate import as_run


def show_formation(runs: tyro.conf.Positional[tuple[str, ...]], keep: bool = False) -> None:
    """Find the steps at which copying, a selective head and the circuit first appear,
    from saved weights.

    Example: sih runs formation runs/flagship --keep

    `sih train --keep-every N` saves the weights. Copying: a head below the last layer
    has half of its attention on one offset of 1 or more. A selective head: one of the
    last layer has 0.8 of the posterior's weight on the true lag. The circuit: `way` is
    at least 0.9 in every window from 17 tokens on (`sih runs evaluate`).

    Args:
        runs: The runs' folders.
        keep: Write formation.json into each run's folder, for `sih runs show` and
            `sih.formation`.
    """
    console = plain_console()
    if not runs:
        raise ValueError("name a run's folder, e.g. sih runs formation runs/flagship")
    found = [as_run(name) for name in runs]
    for name, run in zip(runs, found, strict=True):
        if keep and not run.finished:
            raise ValueError(
                f"{name} is not finished; the same `sih train` command resumes it, or leave out --keep"
            )
    for run in found:
        measured = keep_formation(run) if keep else formation(run)
        console.print(f"{run.name}: {measured.in_words}")
