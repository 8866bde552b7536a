"""`sih runs evaluate`: quality of trained models on fresh sequences."""

import tyro

from sih.cli.printing import plain_console
from sih.training.runs.evaluate import as_run, measure
from sih.training.runs.evaluation import digest_of_weights, write_evaluation
from sih.training.runs.run import WEIGHTS


def evaluate(runs: tyro.conf.Positional[tuple[str, ...]], keep: bool = False) -> None:
    """Measure finished runs on fresh sequences: mean KL relative to maximum
    likelihood's, with two standard errors.

    Example: sih runs evaluate paper-1.2.3-length32

    All runs on one task are measured on the same sequences, 8,192 or more: enough to
    know KL/ML to 0.02 or 2 %. `way` runs from 0 (equal weights for all candidates) to 1
    (maximum likelihood). A model has found the circuit if it is at least 0.9 in every
    window from 17 tokens on. At length 128 that takes 5 s (standard) to 60 s
    (disentangled) on one core.

    Args:
        runs: The runs' folders, or names of shipped models.
        keep: Write evaluation.json into each run's folder, for tables and
            `sih.evaluate`.
    """
    console = plain_console()
    if not runs:
        raise ValueError(
            "name a run's folder or a shipped model, e.g. sih runs evaluate paper-1.2.3"
        )
    found = [as_run(name) for name in runs]
    for name, run in zip(runs, found, strict=True):
        if not run.finished:
            raise ValueError(f"{name} is not finished; the same `sih train` command resumes it")
    for run in found:
        measured = measure(run.model, run.task)
        ratios = ", ".join(
            f"{each.label}: {each.kl_over_ml.with_error()}" for each in measured.windows
        )
        console.print(
            f"{run.name}: KL/ML {measured.kl_over_ml.with_error()} on {measured.sequences:,} fresh sequences "
            f"(KL {measured.kl.with_error()}, ML {measured.ml.with_error()}, BMA {measured.bma.with_error()}; "
            f"KL/ML by tokens seen {ratios}); {measured.verdict}"
        )
        if keep:
            write_evaluation(run.folder, measured, digest_of_weights(run.folder / WEIGHTS))
