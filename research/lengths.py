"""Writes how well models with relative positions do on sequences longer than those of their training.

    python research/lengths.py MODEL ... --out relative_lengths.csv

A MODEL is a run's folder, or a shipped model. Each is judged on sequences of its own task at every length
(`--lengths`), the first of those that `sih.evaluate` draws. Beside the models of a task stands the circuit
for it, the same weights at every length: heads [1,1,1] written by hand, in float64, with a start token. It
computes the predictor of Prop. 1 at beta 100 (`sih.construct`, kind "relative"). A row is:

    model                     the run's name, or "circuit"
    lags, law, matrix         the task: its lags, and the law and seed of its matrix
    trained                   the length of training; empty for the circuit
    reach, offsets, start     which offsets the model tells apart, and how
    length                    of the sequences that it is judged on
    kl_over_ml, error         over the positions past the first max_lag, with one standard error
    bayes_over_ml             the least that KL/ML can be
    sequences                 that it is judged on
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

import sih
from sih.base.errors import check_sizes
from sih.base.files import check_place, write_rows
from sih.models import Model
from sih.training.runs.evaluate import as_run, fresh_sequences, measure_on
from sih.training.runs.run import Run

LENGTHS, SEQUENCES = (64, 128, 256, 1024), 256
COLUMNS = (
    *("model", "lags", "law", "matrix", "trained", "reach", "offsets", "start"),
    *("length", "kl_over_ml", "error", "bayes_over_ml", "sequences"),
)


def rows_of(runs: Sequence[Run], lengths: Sequence[int], sequences: int) -> Iterator[list[str]]:
    """Return the rows of each model at every length, those of the circuit before the first model of a task."""
    seen: list[sih.Task] = []
    for run in runs:
        flat, task = run.config.flat(), run.config.task.steady()
        what = [" ".join(map(str, task.lags)), str(flat["matrix_law"]), str(flat["matrix_seed"])]
        if not any(task.same_chains(other) for other in seen):
            seen.append(task)
            circuit = sih.construct(task, kind="relative", form="standard")
            yield from _judged("circuit", what, "", circuit, task, lengths, sequences)
        yield from _judged(run.name, what, str(task.length), run.model, task, lengths, sequences)


def _judged(
    name: str,
    what: list[str],
    trained: str,
    model: Model,
    task: sih.Task,
    lengths: Sequence[int],
    sequences: int,
) -> Iterator[list[str]]:
    assert isinstance(model, sih.RelativeTransformer)
    config, words = model.config, model.config.offsets
    shape = [
        str(config.reach),
        words[0] if len(set(words)) == 1 else " ".join(words),
        str(config.start),
    ]
    for length in lengths:
        longer = task.with_length(length)
        found = measure_on(_drawn(longer, sequences), model, longer)
        numbers = (found.kl_over_ml.mean, found.kl_over_ml.error, found.bma.mean / found.ml.mean)
        yield [
            name,
            *what,
            trained,
            *shape,
            str(length),
            *(f"{number:.5g}" for number in numbers),
            str(sequences),
        ]


def _drawn(task: sih.Task, sequences: int) -> torch.Tensor:
    """Return the first sequences of those that every model of a task is measured on."""
    parts, missing = [], sequences
    for tokens in fresh_sequences(task):
        parts.append(tokens[:missing])
        missing -= len(parts[-1])
        if not missing:
            break
    return torch.cat(parts)


def opened(names: Sequence[str]) -> list[Run]:
    """Open runs, or raise a ValueError about the first that can't be judged at other lengths."""
    runs = [as_run(name) for name in names]
    for name, run in zip(names, runs, strict=True):
        if run.config.model.kind != "relative":
            raise ValueError(
                f"{name} is a {run.config.model.kind} model, which takes no longer sequences"
            )
        if not run.finished:
            raise ValueError(f"{name} is not finished")
    return runs


def main(words: Sequence[str] | None = None) -> int:
    """Write the table. The exit code is 0, 2 if there is a model that has no row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", help="runs' folders, or names of shipped models")
    parser.add_argument("--out", type=Path, required=True, help="the table, a .csv file")
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=LENGTHS, help="lengths to judge at"
    )
    parser.add_argument("--sequences", type=int, default=SEQUENCES, help="sequences of each length")
    given = parser.parse_args(words)
    rows = []
    try:
        check_place(given.out)
        check_sizes(sequences=given.sequences)
        for row in rows_of(opened(given.models), given.lengths, given.sequences):
            rows.append(row)
            print(
                "  ".join(f"{name} {cell}" for name, cell in zip(COLUMNS, row, strict=True)),
                flush=True,
            )
        write_rows(given.out, [COLUMNS, *rows])
    except ValueError as error:
        print(f"lengths: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
