"""Writes how long runs take to the circuit: steps, tokens and core-seconds, a row for each run.

    python research/time_to_circuit.py FOLDER ... --out time_to_circuit.csv

A FOLDER is a run's, or holds the folders of runs. Rows are of finished runs that kept weights along the
way (`keep_every`) or have a formation.json. A run without one gets it (`sih runs formation --keep`), so
that a run is measured once. A row is:

    run, model, heads, lags, length             what is trained
    law, matrix, seed                           the law and the seed of its matrix, and the seed of training
    optimiser, init, target, batch, steps       how
    measured                                    the number of steps at which the model was measured
    copying, selective, circuit                 the first measured step that has it (`sih.formation`)
    ..._tokens                                  tokens trained on by then
    ..._core_seconds                            time of all cores by then

Cells are empty if no measured step has it, core-seconds also if the run did not note its own. A run
appears to have something later than it does, by up to the steps between two measured ones.

`environment.json` holds core-seconds of the whole run. They are shared out among its steps, which differ
where sequences are short at first (preset `auto`). A step of the standard model costs as many times more
as it has tokens: 0.023, 0.044 and 0.090 core-seconds at length 32, 64 and 128 (preset `auto`, heads
[1,3,1], batch 128). One of the disentangled model costs as its tokens times its length: 0.023 and 0.083
at 32 and 64 (batch 64). Measurements on held-out sequences count as part of the steps.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sih.attention.circuit_formation import keep_formation
from sih.base.files import check_place, write_rows
from sih.training.config import TrainConfig
from sih.training.runs.formation import EVENTS
from sih.training.runs.run import CONFIG, Run, list_runs

WHAT = ("model", "heads", "lags", "length", "matrix_law", "matrix_seed", "seed")
HOW = ("optimiser", "init", "target", "batch", "steps")
HEADINGS = {"matrix_law": "law", "matrix_seed": "matrix"}
COLUMNS = (
    "run",
    *(HEADINGS.get(name, name) for name in (*WHAT, *HOW)),
    "measured",
    *(f"{event}{what}" for event in EVENTS for what in ("", "_tokens", "_core_seconds")),
)


def row_of(run: Run) -> list[str]:
    """Return the row of a finished run, or raise a ValueError that says why it has none."""
    if not run.finished:
        raise ValueError(f"{run.folder} is not finished")
    formation, config = keep_formation(run), run.config
    flat = config.flat()
    cells = [
        run.name,
        *(_cell(flat[name]) for name in (*WHAT, *HOW)),
        str(len(formation.checkpoints)),
    ]
    for event in EVENTS:
        cells += _time_to(getattr(formation, event), config, run.environment.get("core_seconds"))
    return cells


def _time_to(step: int | None, config: TrainConfig, core_seconds: float | None) -> list[str]:
    """Return a step, and the tokens and core-seconds by then, as cells."""
    if step is None:
        return ["", "", ""]
    seconds = "" if core_seconds is None else f"{core_seconds * share_by(step, config):.1f}"
    return [str(step), str(tokens_by(step, config)), seconds]


def tokens_by(step: int, config: TrainConfig) -> int:
    """Return the number of tokens that so many updates are made on."""
    return config.optimiser.batch * sum(_lengths(step, config))


def share_by(step: int, config: TrainConfig) -> float:
    """Return the share of a run's time that so many updates take."""
    done, whole = (
        sum(_work(config, n) for n in _lengths(end, config))
        for end in (step, config.optimiser.steps)
    )
    return done / whole


def _work(config: TrainConfig, length: int) -> int:
    """Return the time of a step on sequences of this length, in a unit of the run's own."""
    return length * length if config.model.kind == "disentangled" else length


def _lengths(steps: int, config: TrainConfig) -> list[int]:
    """List the length of sequences in each of the first updates."""
    return [config.recipe.length_at(step, config.task.length) for step in range(steps)]


def _cell(value: object) -> str:
    return (
        " ".join(map(str, value))
        if isinstance(value, tuple)
        else ""
        if value is None
        else str(value)
    )


def runs_in(folders: Sequence[Path]) -> Iterator[Run]:
    """Give the runs that folders are or hold, by name within each."""
    for folder in folders:
        yield from [Run(folder)] if (folder / CONFIG).exists() else list_runs(folder)


def main(words: Sequence[str] | None = None) -> int:
    """Write the table. The exit code is 0, 2 if there is no row to write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--out", type=Path, required=True, help="the table, a .csv file")
    given = parser.parse_args(words)
    rows = []
    try:
        check_place(given.out)
        for run in runs_in(given.folders):
            try:
                rows.append(row_of(run))
                print(
                    "  ".join(
                        f"{name} {cell}" for name, cell in zip(COLUMNS, rows[-1], strict=True)
                    ),
                    flush=True,
                )
            except ValueError as error:  # a bad neighbour hides no other
                print(f"time_to_circuit: left out: {error}", file=sys.stderr)
        if not rows:
            raise ValueError(
                "there is no finished run with kept weights in these folders; `--keep-every N` keeps them"
            )
        write_rows(given.out, [COLUMNS, *rows])
    except ValueError as error:
        print(f"time_to_circuit: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
