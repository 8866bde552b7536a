"""Measures what must be given: a model that has the circuit, some layers drawn anew, then plain Adam.

    python research/given.py --out given.csv --runs FOLDER

A donor is a model that has the circuit: one of preset `auto` on the row's own matrix, trained here into
FOLDER, or a model that ships. Of each donor the layers named in `redrawn` are drawn anew (Q, K, V, as by
`--init uniform`) and the rest is given: "13" is layers 1 and 3, and "all" is every weight, embeddings and
readout too. Then all weights are trained at a constant rate on fresh batches. The same command goes on
where it was stopped, and does no row twice. A row is (`circuit_signs` has the exact definitions):

    donor, law, matrix     the donor, and the law and the seed that the matrix is drawn by
    length                 tokens in a sequence
    redrawn, seed, steps   what is drawn anew, the seed of that and of the batches, and updates
    kl_over_ml             mean KL over maximum likelihood's, beyond the first max_lag positions
    selected               last layer: mass on the true lag's token, over the lag's posterior
    candidates             last layer: mass on the tokens that the lags copy
    correlation            layer 1: scores with log P at the lags
    offset_1, offset_2     layers 1 and 2: the largest mean mass on one offset of 1 or more
    core_seconds           of the training

Rows "none" with 0 steps are the donors themselves, with the seed and core-seconds of their training
(empty where these were not kept).
Measured on 512 sequences, the same for all rows of a matrix and length. Run it on one processor kind:
numbers are the same to the last digit only there.
"""

import argparse
import csv
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import sih
from sih.attention.circuit_signs import circuit_signs
from sih.base.errors import FieldError, check_choice, check_sizes
from sih.base.files import reading, write_rows
from sih.models import Model
from sih.models.fast.threads import limited_threads
from sih.task import Batch, Task
from sih.training.config import TrainConfig
from sih.training.presets import preset
from sih.training.runs.run import Run
from sih.training.runs.run_writer import RunWriter
from sih.training.trainer import Trainer

SEQUENCES, SEED = 512, 4321
"""What rows are measured on: so many sequences, drawn from this seed."""
FIRST_SEED = 100
"""Added to a row's seed, so that no layer is drawn as it was before its donor was trained."""
REDRAWN = ("1", "2", "3", "12", "13", "23", "123", "all")
AUTO = "auto"
COLUMNS = (
    *("donor", "law", "matrix", "length", "redrawn", "seed", "steps"),
    *(
        "kl_over_ml",
        "selected",
        "candidates",
        "correlation",
        "offset_1",
        "offset_2",
        "core_seconds",
    ),
)
KEY = 7
"""The first columns, which say what a row is of."""


@dataclass(frozen=True)
class Donor:
    """Names a model that has the circuit, and its task."""

    name: str
    law: str
    matrix: int
    length: int

    @property
    def words(self) -> tuple[str, ...]:
        return (self.name, self.law, str(self.matrix), str(self.length))


DONORS = {
    "uniform11": Donor(AUTO, "uniform", 11, 64),
    "dirichlet0": Donor(AUTO, "dirichlet", 0, 64),
    "plain": Donor("paper-1.2.3-1.1.1-length32", "dirichlet", 0, 32),
}


@dataclass(frozen=True)
class Settings:
    """Says how rows are trained."""

    batch: int = 256
    steps: int = 1200
    steps_with_last: int = 3000
    """where the last layer is drawn anew."""
    learning_rate: float = 1e-3
    donor_steps: int | None = None
    """of a donor of preset `auto`, the preset's own unless given."""

    def __post_init__(self) -> None:
        check_sizes(batch=self.batch, steps=self.steps, steps_with_last=self.steps_with_last)

    def steps_of(self, redrawn: str) -> int:
        """Return the number of updates where this is drawn anew."""
        return self.steps_with_last if redrawn == "all" or "3" in redrawn else self.steps


def donor_run(donor: Donor, settings: Settings, runs: Path) -> Run:
    """Return the donor's run, trained into its folder if it is one of preset `auto`."""
    if donor.name != AUTO:
        run = sih.open_run(donor.name)
        task = run.config.task
        if (task.length, task.matrix_seed) != (donor.length, donor.matrix):
            raise ValueError(
                f"{donor.name} is of length {task.length} and matrix {task.matrix_seed}; got {donor}"
            )
        return run
    config, folder = auto_config(donor, settings), runs / "-".join(donor.words)
    for step in RunWriter(config, folder, threads=1):
        if step.evaluation is not None:
            _say(f"{folder.name}: step {step.step:,}, KL/ML {step.evaluation.kl_over_ml:.2f}")
    return Run(folder)


def auto_config(donor: Donor, settings: Settings) -> TrainConfig:
    """Return what a donor of preset `auto` is trained by."""
    law = {} if donor.law == "dirichlet" else {"matrix_law": donor.law}
    steps = {} if settings.donor_steps is None else {"steps": settings.donor_steps}
    task = {"lags": (1, 2, 3), "length": donor.length, "matrix_seed": donor.matrix, **law}
    return preset("auto", heads=(1, 1, 1), **task, **steps)


def is_redrawn(weight: str, redrawn: str) -> bool:
    """Tell whether the weight of this name is drawn anew.

    >>> is_redrawn("layers.0.Q", "13"), is_redrawn("layers.1.Q", "13"), is_redrawn("token", "123")
    (True, False, False)
    """
    if redrawn == "all":
        return True
    part, _, rest = weight.partition(".")
    return part == "layers" and str(int(rest.partition(".")[0]) + 1) in redrawn


def redraw(run: Run, redrawn: str, seed: int, settings: Settings) -> Trainer:
    """Return the training of a donor's model, of which some layers are drawn anew."""
    shape, steps = run.config.model, settings.steps_of(redrawn)
    config = TrainConfig(
        task=run.config.task,
        model=shape,
        seed=FIRST_SEED + seed,
        steps=steps,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        evaluate_every=steps,
    )
    trainer = Trainer(config)
    given = dict(run.model.named_parameters())
    with torch.no_grad():
        for name, weight in trainer.model.named_parameters():
            if not is_redrawn(name, redrawn):
                weight.copy_(given[name])
    return trainer


def measured(model: Model, task: Task, batch: Batch) -> list[str]:
    """Return the measured columns but the last."""
    with torch.no_grad():
        predictions = torch.cat([model.predict(some) for some in batch.tokens.split(64)]).double()
    kl = _mean_kl(predictions, batch, task)
    ml = _mean_kl(sih.maximum_likelihood(batch.tokens, task), batch, task)
    signs = circuit_signs(model, batch, task)
    first, second = signs.copies
    numbers = (kl / ml, signs.selected, signs.candidates, signs.correlation, first, second)
    return [f"{number:.4f}" for number in numbers]


def _mean_kl(predictions: torch.Tensor, batch: Batch, task: Task) -> float:
    return sih.mean_kl(sih.kl_to_truth(predictions, batch, task), task).mean().item()


def train_row(run: Run, redrawn: str, seed: int, settings: Settings, batch: Batch) -> list[str]:
    """Train one row, and return its measured columns."""
    trainer, begin = redraw(run, redrawn, seed, settings), time.process_time()
    while trainer.step < trainer.config.optimiser.steps:
        trainer.advance()
    seconds = time.process_time() - begin
    return [*measured(trainer.model, run.task, batch), f"{seconds:.1f}"]


def rows_of(
    donor: Donor,
    redrawn: Sequence[str],
    seeds: Sequence[int],
    settings: Settings,
    runs: Path,
    done: set[tuple[str, ...]],
) -> Iterator[list[str]]:
    """Make the rows of a donor that are not done yet: its own, then those of each seed."""
    wanted = [(what, seed) for seed in seeds for what in redrawn]
    keys = {
        (what, seed): (*donor.words, what, str(seed), str(settings.steps_of(what)))
        for what, seed in wanted
    }
    whole = (*donor.words, "none", "0", "0")
    if {whole, *keys.values()} <= done:
        return
    run = donor_run(donor, settings, runs)
    batch = sih.sample(run.task, SEQUENCES, rng=SEED)
    if whole not in done:
        seconds = run.environment.get("core_seconds", "")
        yield [*whole, *measured(run.model, run.task, batch), str(seconds)]
    for (what, seed), key in keys.items():
        if key not in done:
            yield [*key, *train_row(run, what, seed, settings, batch)]


def read_rows(path: Path) -> list[list[str]]:
    """Read the rows of a table that is there, without its first line."""
    if not path.exists():
        return []
    with reading(path, "is no table of this script"):
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        if not rows or tuple(rows[0]) != COLUMNS or any(len(row) != len(COLUMNS) for row in rows):
            raise ValueError(f"its columns are not {','.join(COLUMNS)}")
    return rows[1:]


def fill(
    path: Path,
    donors: Sequence[Donor],
    redrawn: Sequence[str],
    seeds: Sequence[int],
    settings: Settings,
    runs: Path,
) -> None:
    """Make all rows that the table has not yet, and write it, whole or not at all, after each."""
    for donor in donors:
        done = {tuple(row[:KEY]) for row in read_rows(path)}
        for row in rows_of(donor, redrawn, seeds, settings, runs, done):
            write_rows(path, [COLUMNS, *read_rows(path), row])
            _say("  ".join(f"{name} {value}" for name, value in zip(COLUMNS, row, strict=True)))


def _say(words: str) -> None:
    print(words, flush=True)


def _settings(given: argparse.Namespace) -> Settings:
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(Settings)}
    return Settings(**fields)


def main(words: Sequence[str] | None = None) -> int:
    """Fill the table. The exit code is 0, 2 if a flag is wrong, 130 if it was stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the table, a .csv file")
    parser.add_argument(
        "--runs", type=Path, required=True, help="the folder that donors are trained into"
    )
    parser.add_argument(
        "--donors",
        nargs="+",
        default=list(DONORS),
        help=f"of {', '.join(DONORS)}; all unless given",
    )
    parser.add_argument(
        "--redrawn", nargs="+", default=list(REDRAWN), help=f"of {', '.join(REDRAWN)}, none"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    for field in dataclasses.fields(Settings):
        kind = float if field.name == "learning_rate" else int
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    given = parser.parse_args(words)
    try:
        for name in given.donors:
            check_choice("donors", name, tuple(DONORS))
        for name in given.redrawn:
            check_choice("redrawn", name, (*REDRAWN, "none"))
        if min(given.seeds) < 0:
            raise FieldError(
                "seeds", f"seeds are whole numbers from 0 on, e.g. 0 1 2; got {min(given.seeds)}"
            )
        settings = _settings(given)
        with limited_threads(1):
            fill(
                given.out,
                [DONORS[name] for name in given.donors],
                given.redrawn,
                given.seeds,
                settings,
                given.runs,
            )
    except ValueError as error:
        print(f"given: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"given: what is done is in {given.out}; the same command goes on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
