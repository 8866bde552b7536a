"""Writes how well runs with relative positions end, a row for each run, and how often they find the circuit.

    python research/relative_rates.py FOLDER ... --out relative_rates.csv --cells relative_cells.csv

A FOLDER is a run's, or holds the folders of runs, as that of a sweep does. Rows are of finished runs. A
run is measured on fresh sequences (`sih.evaluate`), once: its folder keeps what was found, and the same
command goes on from there. A row is:

    run, lags, heads, length, law, matrix       what is trained: lags, heads, the law and seed of the matrix
    batch, steps, reach, offsets, start, seed   how; reach is empty where it is the largest offset
    kl_over_ml, error, sequences                on so many fresh sequences, with one standard error
    bayes_over_ml                               the least that KL/ML can be
    found                                       `way` is at least 0.9 in every window from 17 tokens on
    below_ml                                    the first evaluation of training, a step, with a KL below ML's
    below_ml_core_seconds, core_seconds         time of all cores by then, and in all
    correlation                                 layer 1: its scores at the lags with log P; the sign is free
    copies_L, offset_L                          layer L: its largest mean attention to one offset, and which
    selected, candidates                        the last layer, as in `sih.attention.circuit_signs`

`below_ml` is by the held-out sequences of training, empty if no evaluation is below. Core-seconds by then
are the step's share of all: every step of such a run costs the same. The signs of a circuit are measured
on 512 sequences, queries from a third of the length on.

The second table has a row for each cell: runs that differ in nothing but the seed of training, three or
more. Its rates are of runs that found the circuit, and of runs with a KL/ML below 1, each with Wilson's
95 % interval.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import sih
from sih.attention.circuit_signs import circuit_signs
from sih.base.files import check_place, write_rows
from sih.base.stats import wilson
from sih.models.fast.threads import limited_threads
from sih.training.runs.evaluation import RunEvaluation, digest_of_weights, write_evaluation
from sih.training.runs.run import CONFIG, WEIGHTS, Run, list_runs

SEQUENCES, SEED = 512, 4321
"""What the signs of a circuit are measured on: so many sequences, drawn from this seed."""
LEAST = 3
"""Runs of a cell."""
HEADINGS = {"matrix_law": "law", "matrix_seed": "matrix"}
CELL = (
    *("lags", "heads", "length", "matrix_law", "matrix_seed"),
    *("batch", "steps", "reach", "offsets", "start"),
)
"""What runs of one cell have in common, by the flat names of fields. All else is as `paper-relative` has it."""
SETTING = tuple(HEADINGS.get(name, name) for name in CELL)
COLUMNS = (
    *("run", *SETTING, "seed", "kl_over_ml", "error", "sequences", "bayes_over_ml", "found"),
    *("below_ml", "below_ml_core_seconds", "core_seconds", "correlation"),
    *("copies_1", "offset_1", "copies_2", "offset_2", "selected", "candidates"),
)
CELLS = (
    *(*SETTING, "runs", "found", "found_rate", "found_low", "found_high"),
    *("below_ml", "below_ml_rate", "below_ml_low", "below_ml_high", "kl_over_ml_median"),
)


class Found(NamedTuple):
    """What one run is counted by: what its cell has in common, whether it found the circuit, its KL/ML, its cells."""

    setting: tuple[str, ...]
    found: bool
    kl_over_ml: float
    cells: list[str]


@limited_threads(1)
def found_by(run: Run) -> Found:
    """Measure a finished run, or raise a ValueError that says why it has no row."""
    if not run.finished:
        raise ValueError(f"{run.folder} is not finished")
    config = run.config
    if config.model.kind != "relative" or len(config.heads) != 3:
        raise ValueError(f"{run.folder} is no run with relative positions and three layers")
    task, flat = config.task.steady(), config.flat()
    measured = evaluated(run)
    signs = circuit_signs(run.model, sih.sample(task, SEQUENCES, rng=SEED), task)
    setting = tuple(_cell(flat[name]) for name in CELL)
    step, seconds = below_ml(run), run.environment.get("core_seconds")
    by_then = None if step is None or seconds is None else seconds * step / config.optimiser.steps
    ratio = measured.kl_over_ml
    cells = [
        run.name,
        *setting,
        str(config.seed),
        f"{ratio.mean:.4f}",
        f"{ratio.error:.4f}",
        str(measured.sequences),
    ]
    cells += [
        f"{measured.bma.mean / measured.ml.mean:.4f}",
        "yes" if measured.found else "no",
        _cell(step),
    ]
    cells += ["" if time is None else f"{time:.1f}" for time in (by_then, seconds)]
    cells += [f"{signs.correlation:.3f}"]
    for mass, offset in zip(signs.copies, signs.offsets, strict=True):
        cells += [f"{mass:.3f}", str(offset)]
    cells += [f"{signs.selected:.3f}", f"{signs.candidates:.3f}"]
    return Found(setting, measured.found, ratio.mean, cells)


def evaluated(run: Run) -> RunEvaluation:
    """Return a run's quality on fresh sequences, and keep it beside the weights."""
    kept = run.evaluation
    found = sih.evaluate(run) if kept is None else kept
    if kept is None:
        write_evaluation(run.folder, found, digest_of_weights(run.folder / WEIGHTS))
    return found


def below_ml(run: Run) -> int | None:
    """Return the step of the first evaluation with a KL below maximum likelihood's, None if there is none."""
    ml = run.evaluations[0]["ml"]
    return next((line["step"] for line in run.evaluations if line["kl"] < ml), None)


def cells_of(runs: Iterable[Found]) -> Iterator[list[str]]:
    """Give the row of every cell with three runs or more."""
    groups: dict[tuple[str, ...], list[Found]] = {}
    for run in runs:
        groups.setdefault(run.setting, []).append(run)
    for setting, group in groups.items():
        if len(group) >= LEAST:
            ratios = sorted(run.kl_over_ml for run in group)
            median = (ratios[(len(ratios) - 1) // 2] + ratios[len(ratios) // 2]) / 2
            counts = sum(run.found for run in group), sum(ratio < 1 for ratio in ratios)
            rates = [cell for count in counts for cell in _rate(count, len(group))]
            yield [*setting, str(len(group)), *rates, f"{median:.4f}"]


def _rate(count: int, runs: int) -> list[str]:
    return [str(count), *(f"{number:.3f}" for number in (count / runs, *wilson(count, runs)))]


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def runs_in(folders: Sequence[Path]) -> Iterator[Run]:
    """Give the runs that folders are or hold, by name within each."""
    for folder in folders:
        yield from [Run(folder)] if (folder / CONFIG).exists() else list_runs(folder)


def main(words: Sequence[str] | None = None) -> int:
    """Write both tables. The exit code is 0, 2 if there is no row to write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--out", type=Path, required=True, help="the table of runs, a .csv file")
    parser.add_argument("--cells", type=Path, required=True, help="the table of cells, a .csv file")
    given = parser.parse_args(words)
    rows = []
    try:
        for place in (given.out, given.cells):
            check_place(place)
        for run in runs_in(given.folders):
            try:
                rows.append(found_by(run))
                print(
                    "  ".join(
                        f"{name} {cell}" for name, cell in zip(COLUMNS, rows[-1].cells, strict=True)
                    ),
                    flush=True,
                )
            except ValueError as error:  # a bad neighbour hides no other
                print(f"relative_rates: left out: {error}", file=sys.stderr)
        if not rows:
            raise ValueError(
                "there is no finished run with relative positions in these folders; `sih sweep` makes them"
            )
        write_rows(given.out, [COLUMNS, *(row.cells for row in rows)])
        write_rows(given.cells, [CELLS, *cells_of(rows)])
    except ValueError as error:
        print(f"relative_rates: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
