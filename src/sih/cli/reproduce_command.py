"""`sih reproduce`: make every possible figure, and the report."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sih.cli.figure_command import say
from sih.cli.missing import missing_models, train_missing
from sih.cli.printing import plain_console, track
from sih.cli.time_left import TimeLeft
from sih.report import subjects
from sih.report.page import Shown, write_report
from sih.report.seconds import seconds_of
from sih.results.figure import Figure
from sih.results.judging import VERDICTS
from sih.results.pictures import Made, make_all
from sih.results.processes import processes_for
from sih.training.runs.run_store import RunStore


def reproduce(
    out: Path = Path("out"),
    runs: Path | None = None,
    all: bool = False,
    train: bool = False,
    jobs: int | None = None,
    seed: int | None = None,
) -> None:
    """Make every figure and the report: each statement of the paper, the measured
    number, and the verdict.

    Example: sih reproduce --out out

    Models come from the folder of runs or from the package; only --train trains.
    Existing figures with the same configuration, models and source are not made again.
    After a Ctrl-C the same command resumes.

    Args:
        out: The folder to write to: report.html, report.json, figures/, data/.
        runs: Folder of training runs that is searched for models first; new models go
            there. Default: OUT/runs.
        all: Also make the figures beyond the paper, about ten minutes more
            (`make run-all`).
        train: First train the missing models of the figures, with an estimate of the
            time.
        jobs: Number of processes. Default: one per core.
        seed: Random seed for matrices and sequences, instead of each figure's own; that
            report is in OUT/seed-N.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs is a whole number, at least 1; got {jobs}")
    store = RunStore(folder := out / "runs" if runs is None else runs)
    if seed is not None:
        out = out / f"seed-{seed}"
    if out.exists() and not out.is_dir():
        raise ValueError(f"cannot write to {out}: it is a file")
    console = plain_console()
    every = subjects.figures(subjects.SUBJECTS).values()
    asked = [one for one in every if all or not one.experiment.beyond]
    figures = [one if seed is None else one.with_seed(seed) for one in asked]
    experiments = [one.experiment for one in figures]
    absent = missing_models(experiments, store)
    if train and absent:
        train_missing(absent, folder, console)
    try:
        left = _time_left(figures, jobs)
        making = make_all(figures, out, store, jobs)
        made = {one.figure.name: one for one in track(making, len(figures), "figures", left=left)}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"what was made is kept in {out}; the same command resumes it"
        ) from None
    in_order = [made[one.name] for one in figures]
    results = {one.result.experiment.name: one.result for one in in_order}
    stated = subjects.statements(subjects.SUBJECTS).values()
    findings = subjects.judge_all(
        results, [one for one in stated if all or not one.experiment.beyond]
    )
    shown = [Shown(one.figure.name, one.figure.caption, one.result, one.png) for one in in_order]
    paths = write_report(out, shown, findings)
    say(findings, console)
    counts = Counter(one.verdict for one in findings)
    console.print(
        "; ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    )
    new = [one for one in results.values() if one.computed]
    missing = [f"{one.name} ({one.result.missing})" for one in shown if one.result.missing]
    there = len(shown) - len(missing)
    console.print(f"{there} figures in {out / 'figures'}, {len(new)} of them computed now")
    for line in missing:
        console.print(f"not made: {line}")
    still = missing_models(experiments, store)
    if still:
        console.print(
            f"models not trained yet: {', '.join(still)}; `sih reproduce --train` trains them"
        )
    for path in paths:
        console.print(f"wrote {path}")


def _time_left(
    figures: Sequence[Figure[Any]], jobs: int | None
) -> Callable[[Made[Any], float], float]:
    """Return a function that estimates the seconds left after each figure."""
    time_left = TimeLeft(
        {one.name: seconds_of(one.name) for one in figures}, processes_for(figures, jobs)
    )

    def left(made: Made[Any], now: float) -> float:
        name, new = made.figure.name, made.result.computed or made.drawn
        return time_left.done(name, now) if new else time_left.leave_out(name, now)

    return left
