"""`sih train`: train a model in a folder, or go on where that folder's run stopped."""

from __future__ import annotations

import dataclasses
import itertools
import math
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from sih.markov import load_transition_matrix
from sih.runs.run import Run
from sih.runs.run_names import run_name
from sih.runs.run_writer import CHECKPOINT_SECONDS, Recorder, describe_environment
from sih.runs.tensorboard import Events
from sih.training.presets import PRESETS
from sih.training.trainer import DivergedError, Step, TrainConfig

Preset = Literal["paper", "paper-disentangled", "harmonic"]


def train(
    preset: Preset = "paper",
    model: Literal["standard", "disentangled"] | None = None,
    lags: tuple[int, ...] | None = None,
    states: int | None = None,
    length: int | None = None,
    heads: tuple[int, ...] | None = None,
    dim: int | None = None,
    qk_dim: int | None = None,
    mlp_dim: int | None = None,
    init: str | None = None,
    max_period: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    learning_rate: float | None = None,
    betas: tuple[float, float] | None = None,
    schedule: Literal["constant", "cosine"] | None = None,
    warmup: int | None = None,
    held: int | None = None,
    shorter: tuple[tuple[int, int], ...] | None = None,
    matrix: Path | None = None,
    matrix_seed: int | None = None,
    concentration: float | None = None,
    evaluate_every: int | None = None,
    held_out: int | None = None,
    stored: Literal["float32", "float16"] | None = None,
    seed: int | None = None,
    out: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    tensorboard: bool = False,
) -> int:
    """Train a model. The same command on an unfinished folder goes on where it stopped, to the same bytes.

    Example: sih train --model standard --lags 1 2 3 --heads 1 3 1 --steps 10000 --seed 0 --out runs/flagship

    What a flag does not say comes from the preset. On a finished folder the command has nothing to do.

    Args:
        preset: where to start from; "paper" is the paper's setting, docs/training.md says what the others are for.
        model: attention with embeddings added up, or the paper's disentangled transformer.
        lags: the lags a sequence may have, increasing.
        states: number of states.
        length: tokens in a sequence.
        heads: number of heads of each layer.
        dim: width of the standard model.
        qk_dim: width of queries and keys; its root is the temperature of the attention.
        mlp_dim: width of an MLP after every attention layer (none unless said).
        init: how weights are drawn: uniform, normal (standard only) or harmonic (docs/training.md).
        max_period: the largest period of a harmonic model's positions.
        steps: updates.
        batch: sequences in a batch, drawn afresh at every step.
        learning_rate: Adam's.
        betas: Adam's.
        schedule: constant, or falling along a cosine to 0.
        warmup: steps over which the learning rate rises.
        held: steps during which a harmonic model's layers keep to their parts.
        shorter: pairs of a step and a length: shorter sequences until that step.
        matrix: a transition matrix, .npy or .csv, instead of a random one.
        matrix_seed: of a random matrix.
        concentration: of the Dirichlet rows of a random matrix.
        evaluate_every: steps between two measurements of KL on the held-out sequences.
        held_out: number of held-out sequences.
        stored: type of the numbers in the weights' file.
        seed: of the initial weights and the batches.
        out: the run's folder (runs/NAME, the name made from the configuration).
        device: where to compute, cpu or cuda.
        threads: of the CPU (all cores unless said); an unfinished run keeps the number it began with.
        checkpoint_seconds: how often the state is saved, and how much work a kill -9 can cost.
        tensorboard: write TensorBoard events into the folder, too (needs the extra "tensorboard").
    """
    given = dict(locals())
    config = _config(given)
    folder = Path("runs") / run_name(config) if out is None else out
    console = Console(soft_wrap=True, highlight=False)
    shown = [Events(folder)] if tensorboard else []
    recorder = Recorder(config, folder, device=device, threads=threads, checkpoint_seconds=checkpoint_seconds)
    if recorder.finished:
        console.print(f"{folder} is finished already")
        for _ in recorder:
            pass
        _summary(Run(folder), console)
        return 0
    again = shlex.join(["sih", "train", *sys.argv[2:]]) if sys.argv[1:2] == ["train"] else "the same command"
    try:
        run_to_the_end(recorder, console, again, shown)
    except DivergedError as error:
        print(f"sih: {error}; the last checkpoint is kept in {folder}", file=sys.stderr)
        return 1
    return 0


def run_to_the_end(recorder: Recorder, console: Console, again: str, shown: Sequence[Events] = ()) -> None:
    """Train, showing how it goes, in `shown` too. Stopped by Ctrl-C it saves and says how to go on, by `again`."""
    _say_how_it_begins(recorder, console)
    bar: _Progress = _Bar(recorder.config, console) if console.is_terminal else _Lines(recorder.config, console)
    with _interruptible() as stopped, bar, ExitStack() as writing:
        for events in shown:
            writing.enter_context(events)
        for step in recorder:
            for view in (bar, *shown):
                view.show(step)
            if stopped:
                recorder.save()
                break
    if stopped and not recorder.finished:
        progress = f"step {recorder.trainer.step} of {recorder.config.steps}"
        raise KeyboardInterrupt(f"{recorder.folder} is saved at {progress}; go on with: {again}")
    _summary(Run(recorder.folder), console)


def _config(given: dict[str, Any]) -> TrainConfig:
    """The preset's configuration with what the flags say."""
    said = {name: value for name, value in given.items() if value is not None}
    names = {field.name for field in dataclasses.fields(TrainConfig)} - {"matrix"}
    changes = {name: value for name, value in said.items() if name in names}
    if "matrix" in said:
        P = load_transition_matrix(said["matrix"])
        if said.get("states", P.shape[0]) != P.shape[0]:
            raise ValueError(
                f"--states {said['states']} does not fit {said['matrix']}, which has {P.shape[0]} states; leave one out"
            )
        changes |= {"matrix": tuple(map(tuple, P.tolist())), "states": P.shape[0]}
    return PRESETS[given["preset"]](**changes)


def command_of(config: TrainConfig) -> str:
    """The command that trains a configuration: every flag that differs from the paper's setting.

    >>> command_of(TrainConfig(lags=(1, 3), heads=(1, 1, 1), steps=2400))
    'sih train --lags 1 3 --heads 1 1 1 --steps 2400'
    """
    words = ["sih", "train"]
    for field in dataclasses.fields(TrainConfig):
        value = getattr(config, field.name)
        if value == field.default:
            continue
        if field.name == "matrix":
            words += ["--matrix", "P.csv"]
            continue
        flat = itertools.chain.from_iterable(value) if field.name == "shorter" else value
        values = flat if isinstance(value, tuple) else (value,)
        words += [f"--{field.name.replace('_', '-')}", *map(str, values)]
    return shlex.join(words)


def _say_how_it_begins(recorder: Recorder, console: Console) -> None:
    config = recorder.config
    weights = sum(weight.numel() for weight in recorder.trainer.model.parameters())
    verb = "going on with" if recorder.resumed else "training"
    console.print(
        f"{verb} {config.model}, heads {list(config.heads)}, lags {list(config.lags)}, {weights:,} weights, "
        f"{config.steps:,} steps, {recorder.environment['threads']} threads -> {recorder.folder}"
    )
    here = describe_environment(recorder.environment["device"], recorder.environment["threads"])
    for name in ("torch", "processor", "attention"):
        begun = recorder.environment.get(name, "torch")  # runs from before there was another attention
        if here[name] != begun:
            console.print(
                f"begun with {name} {begun}, going on with {here[name]}: the result may differ in "
                "its last digits from that of a run never stopped"
            )


def _summary(run: Run, console: Console) -> None:
    first, last = run.evaluations[0], run.evaluations[-1]
    console.print(
        f"mean KL past the first {run.task.max_lag} positions: {last['kl']:.4f} "
        f"({last['kl'] / first['ml']:.2f} x maximum likelihood's {first['ml']:.4f}; Bayes {first['bma']:.4f}), "
        f"{last['step']:,} steps, {run.environment.get('seconds', math.nan):.0f} s -> {run.folder}"
    )


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """A list that fills when Ctrl-C (or a polite kill) asks to stop: a step is never left half done.

    Asked a second time, the process stops at once; the last checkpoint is then what remains.
    """
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt("the last checkpoint is kept; the same command goes on from it")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress(Protocol):
    def show(self, step: Step) -> None: ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *exception: object) -> None: ...


class _Bar:
    """On a terminal: loss, KL relative to maximum likelihood, rate, time left."""

    def __init__(self, config: TrainConfig, console: Console) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
        self.progress = Progress(*columns, TimeRemainingColumn(), console=console)
        self.task = self.progress.add_task("", total=config.steps)
        self.kl, self.loss = "", math.nan

    def show(self, step: Step) -> None:
        if step.evaluation:
            self.kl = f"KL {step.evaluation.mean_kl / step.evaluation.ml_kl:.2f} x ML"
        if step.loss is not None:
            self.loss = step.loss if math.isnan(self.loss) else 0.9 * self.loss + 0.1 * step.loss
        words = f"loss {self.loss:.4f}  {self.kl}  {step.tokens_per_second:,.0f} tokens/s"
        self.progress.update(self.task, completed=step.step, description=words)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()


class _Lines:
    """Elsewhere, a file say: a line at every evaluation."""

    def __init__(self, config: TrainConfig, console: Console) -> None:
        self.config, self.console = config, console

    def show(self, step: Step) -> None:
        if step.evaluation:
            found = step.evaluation
            loss = "" if step.loss is None else f"  loss {step.loss:.4f}  {step.tokens_per_second:,.0f} tokens/s"
            self.console.print(
                f"step {step.step:,}/{self.config.steps:,}  KL {found.mean_kl:.4f} = "
                f"{found.mean_kl / found.ml_kl:.2f} x ML (ML {found.ml_kl:.4f}, BMA {found.bma_kl:.4f}){loss}"
            )

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
