"""`sih train`: train a model in a folder, or resume that folder's run."""

import functools
import math
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from sih.cli.printing import plain_console
from sih.cli.train_flags import command_of as command_of
from sih.cli.train_flags import defaults
from sih.cli.train_flags import explicit_command as explicit_command
from sih.models import KINDS, ModelShape
from sih.training.config import TARGETS, TrainConfig
from sih.training.config_parts import CHOICES, EvaluationConfig
from sih.training.optimiser import OPTIMISERS, Optimiser
from sih.training.presets import PRESETS
from sih.training.recipes import Recipe, all_recipes
from sih.training.runs.run import Run
from sih.training.runs.run_names import run_name
from sih.training.runs.run_writer import CHECKPOINT_SECONDS, RunWriter, describe_environment
from sih.training.runs.tensorboard import EventWriter
from sih.training.task_config import TaskConfig
from sih.training.trainer import DivergedError, Step

LAYERS = 3
"""Attention layers of the paper's circuit."""
TOO_FEW_LAYERS = (
    "the paper's circuit needs three attention layers, fewer cannot hold it: the four shipped models "
    "with two end at KL/ML 3.2 to 7.8"
)
PAPER_PRESET = "preset paper: unaided Adam, hours at length 128; for a selective head in minutes: --preset auto"


def _one_of(choices: Iterable[str], flag: str | None = None) -> Any:
    return tyro.conf.arg(metavar="|".join(dict.fromkeys(choices)), name=flag)


def train(
    task: TaskConfig,
    model: ModelShape,
    optimiser: Optimiser,
    recipe: Recipe,
    evaluation: EvaluationConfig,
    preset: Annotated[str, _one_of(PRESETS)] = "paper",
    kind: Annotated[str, _one_of(KINDS, "model")] = CHOICES["model"],
    init: Annotated[str, _one_of(recipe.name for recipe in all_recipes())] = CHOICES["init"],
    method: Annotated[str, _one_of(OPTIMISERS, "optimiser")] = CHOICES["optimiser"],
    stored: str = "float32",
    target: Annotated[str, _one_of(TARGETS)] = "sampled",
    seed: int = 0,
    out: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    keep_every: int | None = None,
    tensorboard: bool = False,
) -> int:
    """Train a model. The same command on an unfinished folder resumes it, and ends with
    the same bytes.

    Example: sih train --preset auto --lags 1 2 3 --heads 1 3 1 --length 32 --out runs/mine

    The preset sets every value that no flag gives. On a finished folder the command
    does nothing. Some flags belong to one kind of model or one recipe:
    `sih train --init harmonic --help` shows those of a harmonic start.

    Args:
        preset: Set of defaults: auto (minutes; restricts layers at first), harmonic
            (the same with Adam) or paper (unaided Adam, up to hours).
            paper-disentangled and paper-relative are paper for other kinds of model.
        task: The task.
        model: The model.
        optimiser: The optimiser.
        recipe: The initial weights, and which of them are trained when.
        evaluation: When the model is evaluated.
        kind: Kind of transformer: standard (embeddings are added), disentangled (the
            paper's) or relative (relative positions).
        init: Recipe for the initial weights, and for which of them are trained at
            first.
        method: Optimiser.
        stored: Number format of the weights' file, float32 or float16.
        target: Target of the loss: the sampled next token, or its true distribution.
        seed: Random seed for the initial weights and the batches.
        out: The run's folder. By default runs/NAME, with a name made from the
            configuration.
        device: Device to compute on, cpu or cuda.
        threads: Number of CPU threads. By default one per core; an unfinished run keeps
            its number.
        checkpoint_seconds: Seconds between two checkpoints, the most work that a kill
            -9 can cost.
        keep_every: Also save the weights every N steps, in the subfolder kept.
        tensorboard: Also write TensorBoard events into the folder (needs the extra
            "tensorboard").
    """
    parts: dict[str, Any] = {"task": task, "model": model, "optimiser": optimiser, "recipe": recipe}
    config = TrainConfig(**parts, evaluation=evaluation, seed=seed, stored=stored, target=target)
    folder = Path("runs") / run_name(config) if out is None else out
    console = plain_console()
    events = EventWriter(folder) if tensorboard else None
    how: dict[str, Any] = {"checkpoint_seconds": checkpoint_seconds, "keep_every": keep_every}
    writer = RunWriter(config, folder, device=device, threads=threads, **how)
    if writer.finished:
        console.print(f"{folder} is finished already")
        for _ in writer:
            pass
        _summary(Run(folder), console)
        return 0
    if preset == "paper" and not writer.resumed:
        console.print(PAPER_PRESET)
    again = (
        shlex.join(["sih", "train", *sys.argv[2:]])
        if sys.argv[1:2] == ["train"]
        else "the same command"
    )
    try:
        run_to_the_end(writer, console, again, events)
    except DivergedError as error:
        print(f"sih: {error}; the last checkpoint is kept in {folder}", file=sys.stderr)
        return 1
    return 0


def run_to_the_end(
    writer: RunWriter, console: Console, again: str, events: EventWriter | None = None
) -> None:
    """Train to the end and show progress, also as `events`. After a Ctrl-C it saves and
    prints `again`, the command to resume.
    """
    _say_how_it_begins(writer, console)
    show, total = _bar if console.is_terminal else _lines, writer.config.optimiser.steps
    with _interruptible() as stopped, events or nullcontext():
        for step in show(writer, console):
            if events:
                events.show(step)
            if stopped:
                writer.save()
                break
    if stopped and not writer.finished:
        place = f"{writer.folder} is saved at step {writer.trainer.step} of {total}"
        raise KeyboardInterrupt(f"{place}; resume with: {again}")
    _summary(Run(writer.folder), console)


def start_from(words: list[str]) -> tuple[Callable[..., int], list[str]]:
    """Return `train` with the defaults that a command line chooses, and the remaining
    words.
    """
    given, words = defaults(words)
    recipe, optimiser = given["recipe"], given["optimiser"]
    chosen = {"kind": given["model"].kind, "init": recipe.name, "method": optimiser.name}
    command = functools.partial(train, **given, **chosen)
    command.__doc__ = train.__doc__
    return command, words


def _say_how_it_begins(writer: RunWriter, console: Console) -> None:
    config = writer.config
    heads = list(config.heads)
    weights = sum(weight.numel() for weight in writer.trainer.model.parameters())
    verb = "resuming" if writer.resumed else "training"
    console.print(
        f"{verb} {config.model.kind}, heads {heads}, {config.task.in_words}, {weights:,} weights, "
        f"{config.optimiser.steps:,} steps, {_threads(writer.environment['threads'])} -> {writer.folder}"
    )
    if len(config.heads) < LAYERS and len(config.task.lags) > 1 and not writer.resumed:
        console.print(TOO_FEW_LAYERS)
    here = describe_environment(writer.environment["device"], writer.environment["threads"])
    for name in ("torch", "processor"):
        if here[name] != writer.environment[name]:
            console.print(
                f"begun with {name} {writer.environment[name]}, resumed with {here[name]}: ",
                end="",
            )
            console.print(
                "the result may differ in its last digits from that of an uninterrupted run"
            )


def _threads(number: int) -> str:
    return f"{number} thread{'s' * (number != 1)}"


def _summary(run: Run, console: Console) -> None:
    first, last = run.evaluations[0], run.evaluations[-1]
    seconds = run.environment.get("seconds", math.nan)
    console.print(
        f"held-out KL {last['kl']:.4f} nats, KL/ML {run.held_out_kl_over_ml:.2f} "
        f"(ML {first['ml']:.4f}, BMA {first['bma']:.4f}). "
        f"{last['step']:,} steps in {seconds:.0f} s, saved to {run.folder}"
    )


@contextmanager
def _interruptible() -> Iterator[list[int]]:
    """Return a list that fills when Ctrl-C (or a SIGTERM) asks to stop: no step is left
    half done.

    The second time, the process stops at once; the last checkpoint remains.
    """
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise KeyboardInterrupt("the last checkpoint is kept; the same command resumes from it")

    with on_stop(note):
        yield asked


@contextmanager
def on_stop(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Call the handler at Ctrl-C and SIGTERM within the block, even if a shell had them
    ignored.
    """
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def _bar(writer: RunWriter, console: Console) -> Iterator[Step]:
    """Yield the steps, and show on a terminal loss, KL relative to maximum likelihood,
    rate and time left.
    """
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}"),
    )
    kl = ""
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("", total=writer.config.optimiser.steps)
        for step in writer:
            if step.evaluation:
                kl = f"held-out KL/ML {step.evaluation.kl_over_ml:.2f}"
            words = f"{_loss(writer)}{kl}  {step.tokens_per_second:,.0f} tokens/s"
            progress.update(task, completed=step.step, description=words)
            yield step


def _lines(writer: RunWriter, console: Console) -> Iterator[Step]:
    """Yield the steps, and print one line per evaluation."""
    total, references_shown = writer.config.optimiser.steps, False
    for step in writer:
        if step.evaluation:
            found = step.evaluation
            if not references_shown:
                console.print(
                    f"held-out KL of the references: maximum likelihood (ML) {found.ml_kl:.4f}, "
                    f"exact inference (BMA) {found.bma_kl:.4f}"
                )
                references_shown = True
            speed = (
                ""
                if step.loss is None
                else f"  {_loss(writer)}{step.tokens_per_second:,.0f} tokens/s"
            )
            console.print(
                f"step {step.step:,}/{total:,}  held-out KL {found.mean_kl:.4f}  "
                f"KL/ML {found.kl_over_ml:.2f}{speed}"
            )
        yield step


def _loss(writer: RunWriter) -> str:
    """Return the loss in the format of the metrics, so that a step has the same loss
    everywhere.
    """
    return "" if writer.loss is None else f"loss {writer.loss:.4f}  "
