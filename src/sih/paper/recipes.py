"""Experiment: KL/ML against training steps for every shipped model, from the runs'
metrics.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.results.beside import by_seeds
from sih.results.curves import Compared
from sih.results.experiment import Experiment
from sih.results.models import PAPER_STATES
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True)
class CoursesConfig:
    """Names of models, or folders of runs. Default: all in the store."""

    models: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Course:
    """One training run: its configuration, and `kl[n]`, the mean KL after `steps[n]`.

    `ml` and `bma` are the mean KL of maximum likelihood and of the Bayesian model
    average on the same sequences. `fresh` is KL/ML of the trained model on fresh
    sequences with its standard error, if the run stores it.
    """

    name: str
    lags: tuple[int, ...]
    compared: Compared
    steps: Int[Tensor, " measurement"]
    kl: Float[Tensor, " measurement"]
    ml: float
    bma: float
    fresh: tuple[float, float] | None = None
    states: int = PAPER_STATES

    @property
    def held_out_kl_over_ml(self) -> float:
        """Return the KL at the end divided by ML's, both on the held-out sequences."""
        return self.kl[-1].item() / self.ml

    @property
    def kl_over_ml(self) -> float:
        """Return KL/ML on fresh sequences if the run stores it, otherwise on the
        held-out ones.
        """
        return self.held_out_kl_over_ml if self.fresh is None else self.fresh[0]


@dataclass(frozen=True, eq=False)
class TrainingCourses:
    """The runs that were found, and the names of those that were not."""

    courses: tuple[Course, ...]
    missing: tuple[str, ...]


def reads(config: CoursesConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all runs of the store on the paper's
    task.
    """
    return config.models or tuple(store.names(papers_task=True))


def compute(config: CoursesConfig, store: RunStore) -> TrainingCourses:
    """Return the measurements that were made during training."""
    runs, missing = store.finished(reads(config, store))
    courses = tuple(_course(run) for run in runs.values())
    return TrainingCourses(courses, tuple(missing))


def _course(run: Run) -> Course:
    (compared,) = by_seeds([run])
    found = run.evaluations
    steps = torch.tensor([line["step"] for line in found])
    kl = torch.tensor([line["kl"] for line in found], dtype=torch.float64)
    fresh = None if run.evaluation is None else run.evaluation.kl_over_ml.pair()
    return Course(
        run.name,
        run.task.lags,
        compared,
        steps,
        kl,
        found[0]["ml"],
        found[0]["bma"],
        fresh,
        run.config.task.states,
    )


EXPERIMENT = Experiment("recipes", CoursesConfig(), TrainingCourses, compute, reads)
