"""`sih reproduce`: make every figure that can be made, and the report of what held."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sih.cli.figure_command import say
from sih.cli.missing import missing_models, train_missing
from sih.cli.printing import plain_console, track
from sih.cli.time_left import TimeLeft
from sih.experiments.table import EXPERIMENTS, seconds_of
from sih.figures.drawn import Drawn, make_all
from sih.report.page import Figure, write_report
from sih.report.statements import MORE, OURS, PAPER, judge_all
from sih.results.experiment import Experiment
from sih.results.judging import VERDICTS
from sih.results.processes import processes_for
from sih.runs.run_store import RunStore


def reproduce(
    out: Path = Path("out"),
    runs: Path | None = None,
    all: bool = False,
    train: bool = False,
    jobs: int | None = None,
    seed: int | None = None,
) -> None:
    """Make every figure and the report: each statement of the paper, the number measured, whether it holds.

    Example: sih reproduce --out out

    Nothing is trained unless asked: models come from the folder of runs or from those that ship. What is in the folder
    already, made from the same configuration, models and source, is not made again; stopped by Ctrl-C, the same command
    goes on.

    Args:
        out: the folder to write to: report.html, report.json, figures/, data/.
        runs: a folder of training runs in which models are looked for first, and to which new ones go (OUT/runs).
        all: also make what goes beyond the paper, some ten minutes more (`make run-all`).
        train: first train the models that figures ask for and that are not there; says how long it will take.
        jobs: processes to compute with (as many as cores unless said).
        seed: of matrices and sequences, instead of each figure's own.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs is a whole number, at least 1; got {jobs}")
    store = RunStore(folder := out / "runs" if runs is None else runs)
    if out.exists() and not out.is_dir():
        raise ValueError(f"cannot write to {out}: it is a file")
    console = plain_console()
    asked = [one for one in EXPERIMENTS.values() if all or not one.beyond]
    experiments = [one if seed is None else one.with_seed(seed) for one in asked]
    absent = missing_models(experiments, store)
    if train and absent:
        train_missing(absent, folder, console)
    try:
        left = _time_left(experiments, jobs)
        made = track(
            make_all(experiments, out, store, jobs), len(experiments), "figures", left=left
        )
        drawn = {one.kept.experiment.name: one for one in made}
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"what was made is kept in {out}; the same command goes on"
        ) from None
    kept = {one.name: drawn[one.name].kept for one in experiments}
    findings = judge_all(kept, PAPER + OURS + MORE if all else PAPER + OURS)
    figures = [Figure(one, drawn[name].png) for name, one in kept.items()]
    paths = write_report(out, figures, findings)
    say(findings, console)
    counts = Counter(one.verdict for one in findings)
    console.print(
        "; ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    )
    new = [one for one in kept.values() if one.computed]
    missing = [f"{name} ({one.missing})" for name, one in kept.items() if one.missing]
    console.print(
        f"{len(kept) - len(missing)} figures in {out / 'figures'}, {len(new)} of them computed now"
    )
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
    experiments: Sequence[Experiment[Any, Any]], jobs: int | None
) -> Callable[[Drawn, float], float]:
    """Make the function that estimates the seconds left after each figure, however long the others take."""
    time_left = TimeLeft(
        {one.name: seconds_of(one.name) for one in experiments}, processes_for(experiments, jobs)
    )

    def left(made: Drawn, now: float) -> float:
        name, new = made.kept.experiment.name, made.kept.computed or made.new
        return time_left.done(name, now) if new else time_left.leave_out(name, now)

    return left
