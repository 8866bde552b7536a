"""What was trained: mean KL over that of maximum likelihood against steps, for every shipped model.

Read from the runs' own metrics; nothing is evaluated again. 1 is as good as maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

from sih.construction import heads_needed
from sih.experiments.cells import braces
from sih.experiments.experiment import Experiment
from sih.runs.run_store import RunStore
from sih.training.config import TrainConfig

CAPTION = (
    "Mean KL to the true next-token law past the first max_lag positions, as a multiple of maximum likelihood's (ML) "
    "on the same held-out sequences, during the training of every shipped model. The grey band is where the Bayesian "
    "model average (BMA) lies for the panel's models. One run each, nothing is averaged; numbers are those at the end."
)


@dataclass(frozen=True)
class CoursesConfig:
    """Shipped models by name, or folders of runs; all that are shipped if none is named."""

    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Course:
    """One run: `kl[n]` is the mean KL after `steps[n]`; `ml` and `bma` are those of the references."""

    name: str
    group: str
    label: str
    steps: list[int]
    kl: list[float]
    ml: float
    bma: float


@dataclass(frozen=True)
class TrainingCourses:
    courses: list[Course]
    missing: list[str]


def reads(config: CoursesConfig, store: RunStore) -> tuple[str, ...]:
    """The trained models it reads."""
    return config.models or tuple(store.names())


def compute(config: CoursesConfig, store: RunStore) -> TrainingCourses:
    runs, missing = store.finished(reads(config, store))
    courses = []
    for run in runs.values():
        found = run.evaluations
        steps, kl = [line["step"] for line in found], [line["kl"] for line in found]
        group, label = place(run.config)
        courses.append(Course(run.name, group, label, steps, kl, found[0]["ml"], found[0]["bma"]))
    return TrainingCourses(courses, missing)


def place(config: TrainConfig) -> tuple[str, str]:
    """The panel a run belongs to, and its name there."""
    lags, heads = braces(config.task.lags), f"[{','.join(map(str, config.heads))}]"
    seed = f", seed {config.seed}" if config.seed else ""
    enough = (1, heads_needed(config.task.lags), 1)
    dim = config.unusual().get("dim")
    if config.model.kind == "disentangled":
        return "disentangled", f"{lags} {heads}{seed}"
    if config.heads == enough and dim is None:
        if config.task.lags == TrainConfig().task.lags:
            return f"lags {lags}, heads {heads}", f"seed {config.seed}"
        return "other lags", f"{lags} {heads}{seed}"
    return f"lags {lags}, other models", f"{heads}{f', d={dim}' if dim else ''}{seed}"


def table(data: TrainingCourses) -> list[list[str]]:
    """A row a run: where it ended."""
    rows = [["model", "steps", "mean KL", "ML", "BMA", "x ML"]]
    for course in data.courses:
        numbers = [f"{value:.4f}" for value in (course.kl[-1], course.ml, course.bma)]
        rows.append([course.name, str(course.steps[-1]), *numbers, f"{course.kl[-1] / course.ml:.2f}"])
    return rows


EXPERIMENT = Experiment("recipes", CAPTION, CoursesConfig(), TrainingCourses, compute, reads, table)
