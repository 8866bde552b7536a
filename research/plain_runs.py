"""Trains the runs of a plan one after another, on one thread.

    python research/plain_runs.py research/plans/a.toml --out FOLDER

The same command goes on where it was stopped, to the same bytes. A plan is a TOML file:

    [base]                                 what all runs share, by the flat names of fields
    heads = [1, 1, 1]
    stop = {at = 20000}                    the stop rule, if any

    [[runs]]
    name = "mine"                          the run's folder in --out
    steps = 30000
    keep_every = 2500                      keep the weights at every so many steps, too

`preset` is where fields start from, "paper" unless given. The stop rule looks at a run when it has made
`at` of its steps. The run ends there if layer 1's correlation with log P is below `correlation` (0.1) in
size and the last layer has less than `selected` (0.6) of the posterior on the true lag, on 512 sequences
(`sih.attention.circuit_signs`). Then it ends with the bytes of a run that was to have `at` steps, and
otherwise with those of a run never looked at. FOLDER/NAME.json says what was seen and done. A run of no
more steps than `at` is not looked at.
"""

import argparse
import dataclasses
import sys
import tomllib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sih
from sih.attention.circuit_signs import CircuitSigns, circuit_signs
from sih.base.errors import FieldError, check_kind, check_number, check_sizes
from sih.base.files import read_json, reading, write_json
from sih.cli.train_command import on_stop
from sih.models.fast.threads import limited_threads
from sih.training.config import TrainConfig
from sih.training.presets import preset
from sih.training.runs.run import CHECKPOINT, Run, read_checkpoint
from sih.training.runs.run_writer import RunWriter
from sih.training.trainer import DivergedError, Step

SEQUENCES, SEED = 512, 4321
"""What a run is looked at on: so many sequences, drawn from this seed."""
EXAMPLE = 'e.g. [[runs]] with name = "mine" and steps = 30000'


@dataclass(frozen=True)
class StopRule:
    """Says when a run is looked at, and below which numbers it ends there."""

    at: int
    correlation: float = 0.1
    selected: float = 0.6

    def __post_init__(self) -> None:
        check_sizes(at=self.at)
        for name in ("correlation", "selected"):
            check_number(
                name, getattr(self, name), 0, wanted=f"{name} is a number from 0 on, e.g. 0.1"
            )

    def ends(self, signs: CircuitSigns) -> bool:
        """Tell whether a run with these signs ends."""
        return abs(signs.correlation) < self.correlation and signs.selected < self.selected


@dataclass(frozen=True)
class Planned:
    """Says what is trained under which name, and how."""

    name: str
    config: TrainConfig
    keep_every: int | None = None
    stop: StopRule | None = None

    def __post_init__(self) -> None:
        if not self.name or Path(self.name).name != self.name or self.name.startswith("."):
            raise FieldError("name", f"name is that of a folder, e.g. 'mine'; got {self.name!r}")
        if self.keep_every is not None:
            check_sizes(keep_every=self.keep_every)
        if self.stop is None:
            return
        if self.stop.at % self.config.evaluation.evaluate_every:
            every = self.config.evaluation.evaluate_every
            raise FieldError(
                "at", f"stop.at is a multiple of evaluate_every, {every}; got {self.stop.at}"
            )
        if not self.config.task.is_paper_task:
            raise FieldError(
                "stop", "a stop rule needs one matrix and one lag a sequence; leave out stop"
            )
        if self.config.optimiser.schedule != "constant":
            raise FieldError(
                "schedule", "a stop rule needs a constant learning rate; leave out schedule"
            )

    @property
    def looked_at(self) -> bool:
        """Tell whether the run is one that the stop rule looks at."""
        return self.stop is not None and self.stop.at < self.config.optimiser.steps


def read_plan(path: str | Path) -> list[Planned]:
    """Read the runs of a plan, or raise a ValueError that says in one line what is wrong with it."""
    path = Path(path)
    with reading(
        path,
        f"is no plan in TOML, {EXAMPLE}",
        missing=f"there is no file {path}; a plan is a TOML file",
    ):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    if unknown := sorted(tables.keys() - {"base", "runs"}):
        raise ValueError(
            f"{path}: there is no table {unknown[0]!r}; a plan has [base] and [[runs]], {EXAMPLE}"
        )
    base, runs = tables.get("base", {}), tables.get("runs", [])
    if not isinstance(base, dict) or not isinstance(runs, list) or not runs:
        raise ValueError(f"{path}: a plan has a table [base] and tables [[runs]], {EXAMPLE}")
    plan = [_planned(path, number, base, run) for number, run in enumerate(runs, 1)]
    names = [planned.name for planned in plan]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(
            f"{path}: there are two runs of the name {twice[0]!r}; a name is of one run"
        )
    return plan


def _planned(path: Path, number: int, base: dict[str, Any], run: object) -> Planned:
    try:
        check_kind("runs", run, dict, f"tables [[runs]], {EXAMPLE}")
        fields = {**base, **dict(run)}  # type: ignore[call-overload]
        name, keep_every, rule = (fields.pop(key, None) for key in ("name", "keep_every", "stop"))
        check_kind("name", name, str, "the name of a run's folder, e.g. 'mine'")
        check_kind("stop", rule, (dict, type(None)), "a table, e.g. {at = 20000}")
        config = preset(fields.pop("preset", "paper"), **fields)
        return Planned(name, config, keep_every, None if rule is None else StopRule(**rule))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}, run {number}: {str(error).splitlines()[0]}") from error


def is_finished(planned: Planned, out: Path) -> bool:
    """Tell whether a run is finished, or raise a ValueError if its folder holds another one."""
    run = Run(out / planned.name)
    if not run.finished or (run.folder / CHECKPOINT).exists():
        return False
    ends = [
        planned.config.optimiser.steps,
        *([planned.stop.at] if planned.stop and planned.looked_at else []),
    ]
    if run.config not in [planned.config.replace(steps=steps) for steps in ends]:
        raise ValueError(
            f"{run.folder} holds another run, which is finished; choose another folder"
        )
    return True


def train_planned(planned: Planned, out: Path) -> None:
    """Train a run to its end, from wherever its folder stands."""
    folder, config = out / planned.name, planned.config
    if planned.looked_at and _ends_early(planned, folder):
        assert planned.stop is not None
        config = config.replace(steps=planned.stop.at)
    _train(config, folder, planned.keep_every)


def _ends_early(planned: Planned, folder: Path) -> bool:
    """Train until the run is looked at, unless it has been, and tell whether it ends there."""
    rule, beside = planned.stop, folder.with_name(f"{folder.name}.json")
    assert rule is not None
    if beside.exists():
        seen = read_json(beside)
        if seen.get("rule") != dataclasses.asdict(rule):
            raise ValueError(f"{beside}: the run was looked at by another rule, {seen.get('rule')}")
        return bool(seen["stopped"])
    if Run(folder).finished:
        return False
    if (done := _steps_done(folder)) > rule.at:
        raise ValueError(
            f"{folder} is at step {done:,}, past {rule.at:,}, where it was to be looked at"
        )
    if done < rule.at:
        _train(planned.config, folder, planned.keep_every, until=rule.at)
    task = planned.config.task.steady()
    with limited_threads(1):
        signs = circuit_signs(Run(folder).model, sih.sample(task, SEQUENCES, rng=SEED), task)
    stopped, words = rule.ends(signs), _words(planned, signs)
    found = {"step": rule.at, "sequences": SEQUENCES, **dataclasses.asdict(signs)}
    write_json(
        beside,
        {"stopped": stopped, "words": words, **found, "rule": dataclasses.asdict(rule)},
        indent=2,
    )
    _say(f"{planned.name}: {words}")
    return stopped


def _words(planned: Planned, signs: CircuitSigns) -> str:
    assert planned.stop is not None
    verb = "stopped" if planned.stop.ends(signs) else "went on"
    return (
        f"{verb} at step {planned.stop.at:,} of {planned.config.optimiser.steps:,}: layer 1's correlation with "
        f"log P is {signs.correlation:.2f}, and the last layer has {signs.selected:.2f} of the posterior on the "
        f"true lag (a run stops below {planned.stop.correlation:g} in size and {planned.stop.selected:g})"
    )


def _steps_done(folder: Path) -> int:
    if not (folder / CHECKPOINT).exists():
        return 0
    return int(read_checkpoint(folder / CHECKPOINT)[0]["step"])


def _train(
    config: TrainConfig, folder: Path, keep_every: int | None, until: int | None = None
) -> None:
    """Train to the end, or save at a step and leave it there."""
    writer, asked = RunWriter(config, folder, threads=1, keep_every=keep_every), list[int]()
    with on_stop(lambda number, _: asked.append(number)), closing(iter(writer)) as steps:  # type: ignore[type-var]
        for step in steps:
            _report(folder.name, step, config.optimiser.steps)
            if asked:
                writer.save()
                raise KeyboardInterrupt(
                    f"{folder} is saved at step {step.step:,}; the same command goes on"
                )
            if step.step == until:
                writer.save()
                return


def _report(name: str, step: Step, total: int) -> None:
    if step.evaluation is not None:
        _say(f"{name}: step {step.step:,} of {total:,}, KL/ML {step.evaluation.kl_over_ml:.2f}")


def _say(words: str) -> None:
    print(words, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Train a plan. The exit code is 0, 1 if a run failed, 2 if the plan is wrong, 130 if it was stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path, help="the plan's file")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the runs")
    given = parser.parse_args(words)
    failed = 0
    try:
        for planned in read_plan(given.plan):
            if is_finished(planned, given.out):
                _say(f"{planned.name}: finished already")
                continue
            try:
                train_planned(planned, given.out)
            except DivergedError as error:
                failed = 1
                _say(f"{planned.name}: {error}")
    except ValueError as error:
        print(f"plain_runs: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"plain_runs: {stop}", file=sys.stderr)
        return 130
    return failed


if __name__ == "__main__":
    sys.exit(main())
