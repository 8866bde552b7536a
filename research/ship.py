"""Makes a finished run one that ships: a smaller copy of its folder, among the package's trained models.

    python research/ship.py RUN NAME
    python research/ship.py runs/relative-1.2.3-length64/seed0 relative-1.2.3-length64

RUN is the run's folder. The copy is in src/sih/shipped/NAME, or in `--to FOLDER`/NAME. It has

    config.json           as it is
    weights.safetensors   rounded to float16; loading makes them the model's own type again
    weights.sha256        of those
    metrics.jsonl         evaluations alone, their means made anew from the KL by position;
                          that stands in the first and the last of them
    environment.json      as it is, and what was left out
    evaluation.json       as it is, for the rounded weights; measured on them if there was none
    formation.json        as it is, if there is one

Rounding must not move the mean KL by more than `LIMIT`, on the first `SEQUENCES` sequences of
`sih.evaluate`: otherwise nothing is written. A copy can't be trained on; `sih train` says so.
"""

import argparse
import copy
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sih.base.files import atomic_folder, read_json, write_json
from sih.base.files.tensor_file import write_summed
from sih.models import Model
from sih.models.storage import weights_file
from sih.task import LagTask
from sih.training.runs.evaluate import DRAWN, fresh_sequences, measure, measure_on
from sih.training.runs.evaluation import (
    EVALUATION,
    digest_of_weights,
    read_evaluation,
    write_evaluation,
)
from sih.training.runs.formation import FORMATION
from sih.training.runs.run import CONFIG, ENVIRONMENT, LEFT_OUT, METRICS, WEIGHTS, Run
from sih.training.runs.run_store import SHIPPED

SEQUENCES = 2048
LIMIT = 0.0005
"""The largest relative move of the mean KL."""
DIGITS = 6
NOTE = "weights rounded to float16; metrics of evaluations alone"
"""What is noted of a copy."""
FILES = (CONFIG, WEIGHTS, "weights.sha256", METRICS, ENVIRONMENT, EVALUATION, FORMATION)
Line = dict[str, Any]


@dataclass(frozen=True)
class Copied:
    """A run that was made one that ships: its place, how far its KL moved, its bytes before and after."""

    folder: Path
    move: float
    before: int
    after: int

    def __str__(self) -> str:
        sizes = f"{self.before:,} bytes, now {self.after:,}"
        return f"{self.folder.name}: KL moves by {100 * self.move:+.4f} %; {sizes}"


def ship(run: Run, folder: Path) -> Copied:
    """Write the copy of a finished run that ships, or raise a ValueError if it can't be."""
    _ = run.config
    if not run.finished:
        raise ValueError(f"{run.folder} is not finished; only a trained model ships")
    if run.left_out:
        raise ValueError(f"{run.folder} is such a copy already ({run.left_out})")
    before, content = _bytes_of(run.folder), weights_file(run.model, "float16")
    rounded = rounded_model(run.model)
    move = kl_move(run.model, rounded, run.task)
    if not abs(move) <= LIMIT:
        said = f"{100 * move:+.3f} %, more than {100 * LIMIT:g} %"
        raise ValueError(f"{run.folder}: float16 would move its KL by {said}")
    with atomic_folder(folder, FILES) as new:
        (new / CONFIG).write_bytes((run.folder / CONFIG).read_bytes())
        write_summed(new / WEIGHTS, content)
        lines = "".join(f"{json.dumps(line)}\n" for line in thinned(run.evaluations))
        (new / METRICS).write_text(lines)
        write_json(new / ENVIRONMENT, {**run.environment, LEFT_OUT: NOTE}, indent=2)
        _write_measured(run, new, rounded)
    return Copied(folder, move, before, _bytes_of(folder))


def rounded_model(model: Model) -> Model:
    """Return the model with weights that were rounded to float16 once."""
    rounded = copy.deepcopy(model)
    with torch.no_grad():
        for weight in rounded.state_dict().values():
            weight.copy_(weight.to(torch.float16))
    return rounded


def kl_move(model: Model, rounded: Model, task: LagTask) -> float:
    """Return by how much the mean KL of the rounded model is above the model's, relative to it."""
    pairs = zip(model.state_dict().values(), rounded.state_dict().values(), strict=True)
    if all(torch.equal(one, other) for one, other in pairs):
        return 0.0
    sequences = fresh_sequences(task)
    tokens = torch.cat([next(sequences) for _ in range(math.ceil(SEQUENCES / DRAWN))])[:SEQUENCES]
    before, after = (measure_on(tokens, each, task).kl.mean for each in (model, rounded))
    return after / before - 1


def thinned(evaluations: Sequence[Line]) -> Iterator[Line]:
    """Yield the evaluations with six digits, the KL by position in the first and the last alone."""
    for number, line in enumerate(evaluations):
        ends = number in (0, len(evaluations) - 1)
        yield {
            name: _shorter(value) for name, value in line.items() if ends or "_along" not in name
        }


def _shorter(value: Any) -> Any:
    """Return a number or a list of numbers with six digits."""
    if isinstance(value, list):
        return [_shorter(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _write_measured(run: Run, new: Path, rounded: Model) -> None:
    """Write what was measured of the run's weights beside the rounded ones."""
    old, digest = digest_of_weights(run.folder / WEIGHTS), digest_of_weights(new / WEIGHTS)
    if read_evaluation(run.folder, old) is None:
        write_evaluation(new, measure(rounded, run.task), digest)
    for name in (EVALUATION, FORMATION):
        path = run.folder / name
        if path.exists() and not (new / name).exists():
            values = read_json(path)
            if values["weights"] != old:
                raise ValueError(f"{path} is of other weights than those beside it; remove it")
            write_json(new / name, {**values, "weights": digest, "before_rounding": old}, indent=1)


def _bytes_of(folder: Path) -> int:
    return sum((folder / name).stat().st_size for name in FILES if (folder / name).exists())


def main(arguments: Sequence[str] | None = None) -> None:
    """Copy one run, and print how far its KL moved."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the run's folder")
    parser.add_argument("name", help="the name that it ships under")
    parser.add_argument("--to", type=Path, default=SHIPPED, help="the folder of shipped models")
    asked = parser.parse_args(arguments)
    if not asked.name or Path(asked.name).name != asked.name:
        raise ValueError(f"a name is no path, e.g. relative-1.2.3-length64; got {asked.name!r}")
    print(ship(Run(asked.run), asked.to / asked.name))


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"ship.py: {error}")
