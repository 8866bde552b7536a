"""Writes the tables of trained models that stand in docs/results/data.

    python research/trained_models.py --out docs/results/data

Three files are written:

    model-zoo.csv         one row per shipped model: shape, command, steps, and its quality on
                          fresh sequences, as its `evaluation.json` has it
    training-curves.csv   one row per run with Adam alone: held-out KL/ML at seven steps, and its
                          mean over each of the last five tenths of the run
    training-heads.csv    one row per head of the shipped models of the paper's task: `sih.diagnose`
                          on 512 sequences

`two_errors` is two standard errors. In `training-heads.csv`, `candidates` is attention to the token
that each lag offers for copying, in the order of the lags, and `parents` attention to the token
that each lag gives as parent. `offset` is the offset, among these two, with the most attention, and
`attention` what it has. A head is selective if `true_lag` is at least 0.8 of `posterior`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import sih
from sih.base.files import check_place, write_rows
from sih.cli.train_flags import explicit_command
from sih.models.fast.threads import limited_threads
from sih.training.how_trained import how_trained
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED, RunStore

AT = (2_000, 5_000, 10_000, 15_000, 20_000, 25_000)
"""Steps of training-curves.csv, and `END`: the mean of the evaluations of the last 2,000 steps."""
END = 2_000
SEQUENCES, SEED = 512, 0
"""What heads are read on, as `sih runs show` reads them."""
SELECTIVE = 0.8
SHAPE = ("run", "kind", "lags", "heads", "length", "seed", "steps")
ZOO = (
    *(*SHAPE, "kl", "ml", "bma", "kl_over_ml", "two_errors", "held_out_kl_over_ml"),
    *("found", "trained_by", "command"),
)
TENTHS = tuple(f"tenth_{tenth}" for tenth in range(6, 11))
CURVES = (*SHAPE, *(f"at_{step}" for step in AT), "end", *TENTHS, "kl_over_ml", "two_errors")
HEADS = (
    *("run", "head", "candidates", "true_lag", "posterior", "share", "selective"),
    *("correlation", "parents", "offset", "attention", "period", "fit"),
)


def shape_of(run: Run) -> list[str]:
    config = run.config
    lags, heads = (" ".join(map(str, each)) for each in (config.task.lags, config.heads))
    numbers = (config.task.length, config.seed, config.optimiser.steps)
    return [run.name, config.model.kind, lags, heads, *map(str, numbers)]


def fresh_ratio(run: Run) -> list[str]:
    mean, error = json.loads((SHIPPED / run.name / "evaluation.json").read_text())["kl_over_ml"]
    return [f"{mean:.3f}", f"{2 * error:.3f}"]


def zoo_row(run: Run) -> list[str]:
    """Return the row of a shipped model in model-zoo.csv."""
    kept = json.loads((SHIPPED / run.name / "evaluation.json").read_text())
    means = [f"{kept[name][0]:.4f}" for name in ("kl", "ml", "bma")]
    found = "" if run.evaluation is None else "yes" if run.evaluation.found else "no"
    return [
        *(*shape_of(run), *means, *fresh_ratio(run), f"{run.held_out_kl_over_ml:.2f}", found),
        *(how_trained(run.config), explicit_command(run.config)),
    ]


def curve_row(run: Run) -> list[str]:
    """Return the row of a run in training-curves.csv."""
    lines = run.evaluations
    ratios = {line["step"]: line["kl"] / lines[0]["ml"] for line in lines}
    last = lines[-1]["step"]
    ends = [ratio for step, ratio in ratios.items() if step > last - END]
    tenths = []
    for low, high in pairwise(range(5, 11)):
        part = [r for step, r in ratios.items() if low * last < 10 * step <= high * last]
        tenths.append(sum(part) / len(part))
    cells = [f"{ratios[step]:.2f}" if step in ratios else "" for step in AT]
    means = [f"{each:.2f}" for each in (sum(ends) / len(ends), *tenths)]
    return [*shape_of(run), *cells, *means, *fresh_ratio(run)]


@limited_threads(1)
def head_rows(run: Run) -> Iterator[list[str]]:
    """Yield the row of each head of a run in training-heads.csv."""
    batch = sih.sample(run.task, SEQUENCES, rng=SEED)
    for head in sih.diagnose(run.task, batch, model=run.model).heads:
        share = head.selected / head.exact
        near = {lag - 1: mass for lag, mass in head.copies.items()} | head.parents
        offset = max(near, key=lambda each: near[each])
        numbers = [f"{each:.2f}" for each in (head.selected, head.exact, share)]
        period = ["", ""] if head.period is None else [str(head.period), f"{head.fit:.2f}"]
        yield [
            *(run.name, head.name, spaced(head.copies.values()), *numbers),
            *("yes" if share >= SELECTIVE else "no", signed(head.correlation)),
            *(spaced(head.parents.values()), str(offset), f"{near[offset]:.2f}", *period),
        ]


def spaced(numbers: Iterable[float]) -> str:
    return " ".join(f"{each:.2f}" for each in numbers)


def signed(number: float) -> str:
    return f"{number:.2f}".replace("-0.00", "0.00")


def main(words: Sequence[str] | None = None) -> int:
    """Write the three tables. The exit code is 0, 2 if the folder cannot be written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder of the tables")
    out = parser.parse_args(words).out
    try:
        for name in ("model-zoo", "training-curves", "training-heads"):
            check_place(out / f"{name}.csv")
    except ValueError as error:
        print(f"trained_models: {error}", file=sys.stderr)
        return 2
    store = RunStore()
    shipped = [store.run(name) for name in store.names()]
    alone = [run for run in shipped if run.name.startswith("paper-")]
    write_rows(out / "model-zoo.csv", [ZOO, *map(zoo_row, shipped)])
    write_rows(out / "training-curves.csv", [CURVES, *map(curve_row, alone)])
    readable = map(store.run, store.names(papers_task=True))
    rows = [row for run in readable for row in head_rows(run)]
    write_rows(out / "training-heads.csv", [HEADS, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
