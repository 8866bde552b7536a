"""Measures the two channels of docs/results/evidence-paths.md along training, from weights that runs kept on the way.

    python research/channel_course.py paper-1.2.3-length32 paper-1.2.3 --kept unfinished --out channels-along-training

A RUN is the name of a model of three layers, or a run's folder. Its weights are those of `RUN/kept` (`sih train
--keep-every N`), and those of `KEPT/NAME-kept` for runs whose weights stand apart. OUT.csv has a row for each step:

    run, step                           the run, and the number of updates
    intact, attention, values, both     mean KL, unmodified and with a channel at its mean in layer 3's scores
    donor's attention, donor's values   how often layer 3 picks the sequence's own lag / the donor's
    looked, carried, direct             shares of the evidence in layer 3's scores
    selected                            layer 3's attention on the true lag's token
    diagonal                            how much of the variance of layer 2's scores the offset explains
    layer 1 with log P                  correlation of layer 1's scores at the lags with log P

OUT.pdf, .svg and .png draw it, a column for each run: above mean KL over that of maximum likelihood, below the
shares. A run that is not finished is unsettled at its last step.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.attention.correlation import explained_variance
from sih.attention.distances import Measured, measured
from sih.base.files import check_place, write_rows
from sih.beyond.evidence_paths.channel_shares import Channels
from sih.beyond.evidence_paths.channels import AccountConfig, account, draw, has_channels
from sih.beyond.evidence_paths.channels_figure import COSTS, SHARES
from sih.models.base import Model
from sih.models.fast.threads import limited_threads
from sih.models.offsets import attention_at
from sih.models.storage import load_weights
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.results import style
from sih.results.beside import yardsticks
from sih.results.models import trained_plainly
from sih.results.tables import Rows, braces, with_error
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True)
class CoursePoint:
    step: int
    channels: Channels
    layer_1: dict[str, Measured]
    selected: Measured
    """Share of the last layer's attention on the token that the true lag copies."""
    diagonal: Measured
    """Part of the variance of the second layer's scores that the offset explains, mean over heads."""


@dataclass(frozen=True)
class ChannelCourse:
    name: str
    lags: tuple[int, ...]
    heads: tuple[int, ...]
    length: int
    plain: bool
    settled: bool
    """The run is finished."""
    ml: float
    """Mean KL of maximum likelihood on the same sequences."""
    points: list[CoursePoint]


def kept_weights(run: Run, kept: Path | None = None) -> dict[int, Path]:
    """Find the weights that a run kept, by step: in its folder, and in `kept`/NAME-kept."""
    places = [run.folder / "kept", *([] if kept is None else [kept / f"{run.name}-kept"])]
    files = [path for place in places for path in place.glob("step-*.safetensors")]
    return dict(sorted((int(re.findall(r"\d+", path.stem)[-1]), path) for path in files))


def course_of(run: Run, files: dict[int, Path], config: AccountConfig) -> ChannelCourse:
    """Measure the model at every step whose weights are given."""
    if len(run.config.heads) != 3 or not has_channels(run.config):
        raise ValueError(
            f"channels along training are those of a model of three layers; {run.name} is none"
        )
    if not files:
        raise ValueError(
            f"{run.name} kept no weights along the way; `sih train --keep-every N` keeps them"
        )
    task = run.task
    batch = draw(task, config, "sequences")
    ml = mean_kl(kl_to_truth(yardsticks(batch.tokens, task)["ML"], batch, task), task).mean().item()
    points = [_point(_model_at(run, path), step, run, config) for step, path in files.items()]
    heads, plain = run.config.heads, trained_plainly(run.config)
    return ChannelCourse(run.name, task.lags, heads, task.length, plain, run.finished, ml, points)


def _model_at(run: Run, path: Path) -> Model:
    model = run.config.model.build(run.task.num_states, run.task.length)
    load_weights(model, path)
    return model


@torch.no_grad()
def _point(model: Model, step: int, run: Run, config: AccountConfig) -> CoursePoint:
    found, task = account(model, run, config), run.task
    batch = draw(task, config, "sequences")
    trace = model.trace(batch.tokens[:64])
    lags = batch.lags[:64, None] == torch.tensor(task.lags)
    copied = attention_at(trace.attention[-1].sum(dim=1), [lag - 1 for lag in task.lags])[
        :, task.max_lag : -1
    ]
    position = torch.arange(task.length)
    keys = (
        (position[:, None] >= position)
        & (position >= task.max_lag)
        & (position[:, None] < task.length - 1)
    )
    by_offset = [
        explained_variance(scores, keys, "offset") for scores in trace.scores[1].unbind(dim=1)
    ]
    return CoursePoint(
        step,
        found.channels,
        found.layer_1,
        measured((copied * lags[:, None]).sum(dim=-1).mean(dim=-1)),
        measured(torch.stack(by_offset).mean(dim=0)),
    )


def table(courses: Sequence[ChannelCourse]) -> Rows:
    """Make a row for each step of each run."""
    changes = ("intact", "attention", "values", "both")
    rows = [["run", "step", *changes, "donor's attention", "donor's values", "looked", "carried", "direct",
             "selected", "diagonal", "layer 1 with log P"]]  # fmt: skip
    for course in courses:
        for point in course.points:
            found = point.channels
            rows.append(
                [
                    course.name,
                    str(point.step),
                    *(with_error(*found.kl[what]) for what in changes),
                    *(
                        f"{found.picks[what][0]:.2f} / {found.picks[what][1]:.2f}"
                        for what in ("attention", "values")
                    ),
                    *(with_error(*found.shares[what]) for what in ("looked", "carried", "direct")),
                    with_error(*point.selected),
                    with_error(*point.diagonal),
                    with_error(*point.layer_1["log P"]) if point.layer_1 else "",
                ]
            )
    return rows


def draw_channel_courses(courses: Sequence[ChannelCourse]) -> Figure:
    """Draw what a change costs above, and shares below, against the step."""
    with style.paper_figure(max(3.2 * len(courses), 4.0), 4.4) as figure:
        axes = figure.subplots(2, len(courses), squeeze=False, sharex="col", sharey="row")
        for (above, below), course in zip(axes.T, courses, strict=True):
            _draw_costs(above, course)
            _draw_shares(below, course)
        axes[0, 0].set_ylabel("mean KL / ML")
        axes[1, 0].set_ylabel("share")
        handles: dict[str, Any] = {}
        for ax in (axes[0, 0], axes[1, 0]):
            handles.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
    return figure


def _draw_costs(ax: Axes, course: ChannelCourse) -> None:
    steps = [point.step for point in course.points]
    for name, (colour, marker, said) in COSTS.items():
        if name != "both":
            found = [point.channels.kl[name] for point in course.points]
            mean, error = ([pair[n] / course.ml for pair in found] for n in (0, 1))
            ax.errorbar(steps, mean, yerr=error, color=colour, marker=marker, ms=3, label=said)
    ax.axhline(1, color="black", lw=0.5, ls=":")
    ax.set_yscale("log")
    end = "" if course.settled else f", unsettled at {steps[-1]:,} steps"
    how = "plain" if course.plain else "harmonic"
    ax.set_title(
        f"{course.name}\n{braces(course.lags)}, length {course.length}, {how}{end}", fontsize=7
    )


def _draw_shares(ax: Axes, course: ChannelCourse) -> None:
    steps = [point.step for point in course.points]
    for name in ("looked", "carried", "direct"):
        pairs = [point.channels.shares[name] for point in course.points]
        mean, error = ([pair[n] for pair in pairs] for n in (0, 1))
        ax.errorbar(
            steps, mean, yerr=error, color=SHARES[name], marker=".", label=f"evidence {name}"
        )
    selected, diagonal = (
        [getattr(point, what)[0] for point in course.points] for what in ("selected", "diagonal")
    )
    ax.plot(steps, selected, color="black", ls="--", label="layer 3 on the true lag's token")
    ax.plot(steps, diagonal, color="#888888", ls=":", label="layer 2's scores by offset")
    ax.set(xlabel="step", ylim=(-0.05, 1.02))


def main(words: Sequence[str] | None = None) -> int:
    """Write the table and the figure. The exit code is 0, 2 if a run or a flag is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="names of models, or folders of runs"
    )
    parser.add_argument(
        "--kept",
        type=Path,
        help="the folder of NAME-kept, where weights stand apart from their runs",
    )
    parser.add_argument("--steps", type=int, nargs="+", help="measure these steps alone")
    parser.add_argument("--sequences", type=int, default=128, help="sequences to measure on")
    parser.add_argument(
        "--reference", type=int, default=256, help="sequences that means are taken over"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="the table and the figure, without their endings"
    )
    given, courses = parser.parse_args(words), []
    try:
        check_place(given.out)
        config = AccountConfig(sequences=given.sequences, reference=given.reference)
        with limited_threads(1):
            for name in given.runs:
                run = RunStore().run(name)
                files = kept_weights(run, given.kept)
                wanted = {
                    step: files[step]
                    for step in files
                    if given.steps is None or step in given.steps
                }
                courses.append(course_of(run, wanted, config))
                print(f"{run.name}: {len(wanted)} steps", flush=True)
        write_rows(f"{given.out}.csv", table(courses))
        style.save(draw_channel_courses(courses), given.out)
    except ValueError as error:
        print(f"channel_course: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
