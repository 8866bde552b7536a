"""Training of the models that figures need and that are neither shipped nor in the
folder of runs.
"""

import itertools
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console

from sih.cli.train_command import command_of, run_to_the_end
from sih.results.experiment import Experiment
from sih.training.config import TrainConfig
from sih.training.runs.run import CONFIG, Run
from sih.training.runs.run_names import named
from sih.training.runs.run_store import RunStore
from sih.training.runs.run_writer import RunWriter
from sih.training.trainer import DivergedError, Trainer


def missing_models(experiments: Iterable[Experiment[Any, Any]], store: RunStore) -> list[str]:
    """Return the missing models, in the order in which the figures need them."""
    wanted = dict.fromkeys(name for one in experiments for name in one.reads(one.config, store))
    return [name for name in wanted if store.find(name) is None]


def train_missing(names: list[str], folder: Path, console: Console) -> None:
    """Train one model after the other, each resumable, after an estimate of the time
    from a few timed steps.
    """
    begun = {name: Run(folder / name).config for name in names if (folder / name / CONFIG).exists()}
    configs = {
        name: begun.get(name) or named(name) for name in names
    }  # a run is resumed with its original settings
    left = {name: seconds_left(config, folder / name) for name, config in configs.items()}
    for name, seconds in left.items():
        console.print(
            f"  {name}: about {_minutes(seconds)}   {command_of(configs[name])} --out {folder / name}"
        )
    console.print(
        f"training {len(names)} models takes about {_minutes(sum(left.values()))} on this machine; ",
        end="",
    )
    console.print("stop at any time, the same command resumes it")
    for name, config in configs.items():
        try:
            run_to_the_end(RunWriter(config, folder / name), console, "the same command")
        except DivergedError as error:
            print(f"sih: {name}: {error}; its figures are made without it", file=sys.stderr)


def seconds_left(config: TrainConfig, folder: Path) -> float:
    """Return an estimate of a run's duration, from two timed steps with each length of
    sequence, on a copy.
    """
    run = Run(folder)
    done = run.metrics[-1]["step"] if run.metrics else 0
    edges = [
        0,
        *(until for until, _ in config.recipe.length_schedule or ()),
        config.optimiser.steps,
    ]
    total = 0.0
    for first, last in itertools.pairwise(edges):
        if last <= max(first, done):
            continue
        trainer = Trainer(config)
        trainer.step = first
        trainer.advance()  # the first step is slower: it fills caches
        began = time.perf_counter()
        trainer.advance()
        trainer.advance()
        total += (time.perf_counter() - began) / 2 * (last - max(first, done))
    return total


def _minutes(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
