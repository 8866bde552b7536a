"""Which channel forms first: the account of `channel_account.py` along training, from weights kept on the way.

They are in a finished run's folder (`NAME/kept`) or, in a clone, in `unfinished/NAME-kept`, beside the runs that are on
their way. An unfinished run is unsettled at its last step.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import torch

from sih.analysis.channels import Channels
from sih.analysis.correlation import explained_variance
from sih.analysis.distances import Measured, measured
from sih.experiments.channel_account import AccountConfig, account, draw, has_channels
from sih.experiments.compared import yardsticks
from sih.experiments.experiment import Experiment, Rows, Seeded, with_error
from sih.experiments.model_choice import trained_plainly
from sih.metrics import kl_to_truth, mean_kl
from sih.models.base import Model
from sih.models.offsets import attention_at
from sih.models.storage import load_weights
from sih.runs.run import Run
from sih.runs.run_store import RunStore

UNFINISHED = Path(__file__).parents[3] / "unfinished"
CAPTION = (
    "Along training: which channel comes first. Top: mean KL over maximum likelihood's, of the model as it is (black), "
    "with where layer 2 looked (orange) or what it carried (blue) at its mean, in layer 3's scores only. Bottom: "
    "shares of the evidence in layer 3's scores, looked and carried; the share of layer 3's attention on the true "
    "lag's token (black, dashed: the selective head); how much of layer 2's scores the offset explains (grey, dotted: "
    "diagonals). Weights kept on the way; a run that is not finished is unsettled at its last step."
)


@dataclass(frozen=True)
class CourseConfig(Seeded):
    points: tuple[tuple[str, int], ...] = ()
    """Runs and steps whose weights are there."""
    sequences: int = 128
    reference: int = 256


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


@dataclass(frozen=True)
class ChannelCourses:
    config: CourseConfig
    courses: list[ChannelCourse]


def kept_weights(store: RunStore) -> dict[str, tuple[Run, dict[int, Path]]]:
    """Find runs with weights kept along the way, by name, and the file of each step."""
    folders = [found for name in store.names(papers_task=True) if (found := store.find(name))]
    folders += [path.parent for path in sorted(UNFINISHED.glob("*/config.json"))]
    runs = {}
    for folder in folders:
        places = (folder / "kept", UNFINISHED / f"{folder.name}-kept")
        files = [path for place in places for path in sorted(place.glob("step-*.safetensors"))]
        if files:
            steps = {int(re.findall(r"\d+", path.stem)[-1]): path for path in files}
            runs[folder.name] = (Run(folder), dict(sorted(steps.items())))
    return runs


def compute(config: CourseConfig, store: RunStore) -> ChannelCourses:
    """Measure the model at every step whose weights were kept, of runs with three layers."""
    courses = []
    for name, (run, files) in kept_weights(store).items():
        wanted = {step: path for step, path in files.items() if not config.points or (name, step) in config.points}
        if len(run.config.heads) != 3 or not has_channels(run.config) or not wanted:
            continue
        settings = AccountConfig(sequences=config.sequences, reference=config.reference, seed=config.seed)
        batch = draw(run.task, settings, "sequences")
        ml = mean_kl(kl_to_truth(yardsticks(batch.tokens, run.task)["ML"], batch, run.task), run.task).mean().item()
        points = [_point(_model_at(run, path), step, run, settings) for step, path in wanted.items()]
        task, heads = run.task, run.config.heads
        courses.append(
            ChannelCourse(name, task.lags, heads, task.length, trained_plainly(run.config), run.finished, ml, points)
        )
    return ChannelCourses(config, courses)


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
    copied = attention_at(trace.attention[-1].sum(dim=1), [lag - 1 for lag in task.lags])[:, task.max_lag : -1]
    position = torch.arange(task.length)
    keys = (position[:, None] >= position) & (position >= task.max_lag) & (position[:, None] < task.length - 1)
    by_offset = [explained_variance(scores, keys, "offset") for scores in trace.scores[1].unbind(dim=1)]
    return CoursePoint(
        step,
        found.channels,
        found.layer_1,
        measured((copied * lags[:, None]).sum(dim=-1).mean(dim=-1)),
        measured(torch.stack(by_offset).mean(dim=0)),
    )


def table(data: ChannelCourses) -> Rows:
    """Make a row for each step of each run."""
    changes = ("intact", "attention", "values", "both")
    rows = [["run", "step", *changes, "donor's attention", "donor's values", "looked", "carried", "direct",
             "selected", "diagonal", "layer 1 with log P"]]  # fmt: skip
    for course in data.courses:
        for point in course.points:
            found = point.channels
            rows.append(
                [
                    course.name,
                    str(point.step),
                    *(with_error(*found.kl[what]) for what in changes),
                    *(f"{found.picks[what][0]:.2f} / {found.picks[what][1]:.2f}" for what in ("attention", "values")),
                    *(with_error(*found.shares[what]) for what in ("looked", "carried", "direct")),
                    with_error(*point.selected),
                    with_error(*point.diagonal),
                    with_error(*point.layer_1["log P"]) if point.layer_1 else "",
                ]
            )
    return rows


def _there() -> tuple[tuple[str, int], ...]:
    return tuple((name, step) for name, (_, files) in kept_weights(RunStore()).items() for step in files)


EXPERIMENT = Experiment(
    "channels-along-training", CAPTION, CourseConfig(_there()), ChannelCourses, compute, table=table, beyond=True
)
