"""What was trained: mean KL over ML's against steps, of every shipped model, read from the runs' own metrics."""

from dataclasses import dataclass

from sih.results.beside import by_seeds
from sih.results.curves import Compared
from sih.results.experiment import Experiment, Rows
from sih.runs.run import Run
from sih.runs.run_store import RunStore

CAPTION = (
    "Mean KL to the true next-token law past the first max_lag positions, but for the last, which has no next token, "
    "as a multiple of maximum likelihood's (ML) on the same held-out sequences, during the training of every shipped "
    "model. The grey band is where the Bayesian model average (BMA) lies for the panel's models. One run each, nothing "
    "is averaged. The numbers are of the trained models, on fresh sequences (`sih.evaluate`)."
)


@dataclass(frozen=True)
class CoursesConfig:
    """Asks for models by name, or folders of runs, and for all in the store if none is named."""

    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Course:
    """Holds one run: what was trained and how, and `kl[n]`, the mean KL after `steps[n]`.

    `ml` and `bma` are the mean KL of maximum likelihood and of the Bayesian model average on the same sequences.
    `fresh` is KL/ML of the trained model on fresh sequences, and its standard error, if that is kept with the run.
    """

    name: str
    lags: tuple[int, ...]
    compared: Compared
    steps: list[int]
    kl: list[float]
    ml: float
    bma: float
    fresh: tuple[float, float] | None = None

    @property
    def held_out_kl_over_ml(self) -> float:
        """Divide the KL at the end by ML's, both on the held-out sequences."""
        return self.kl[-1] / self.ml

    @property
    def kl_over_ml(self) -> float:
        """Return KL/ML on fresh sequences if it is kept, else on the held-out ones."""
        return self.held_out_kl_over_ml if self.fresh is None else self.fresh[0]


@dataclass(frozen=True)
class TrainingCourses:
    """Holds the runs that were found, and the names of those that were not."""

    courses: list[Course]
    missing: list[str]


def reads(config: CoursesConfig, store: RunStore) -> tuple[str, ...]:
    """Name the models of the configuration, or all that the store has on the paper's task."""
    return config.models or tuple(store.names(papers_task=True))


def compute(config: CoursesConfig, store: RunStore) -> TrainingCourses:
    """Read the measurements that were made during training."""
    runs, missing = store.finished(reads(config, store))
    return TrainingCourses([_course(run) for run in runs.values()], missing)


def _course(run: Run) -> Course:
    (compared,) = by_seeds([run])
    found = run.evaluations
    steps, kl = [line["step"] for line in found], [line["kl"] for line in found]
    fresh = None if run.evaluation is None else run.evaluation.kl_over_ml.pair()
    return Course(
        run.name, run.task.lags, compared, steps, kl, found[0]["ml"], found[0]["bma"], fresh
    )


def table(data: TrainingCourses) -> Rows:
    """Make one row for each run: where it ended."""
    rows = [
        [
            "model",
            "steps",
            "held-out KL",
            "ML",
            "BMA",
            "held-out KL/ML",
            "fresh KL/ML",
            "standard error",
        ]
    ]
    for course in data.courses:
        numbers = [f"{value:.4f}" for value in (course.kl[-1], course.ml, course.bma)]
        fresh = ["", ""] if course.fresh is None else [f"{number:.4f}" for number in course.fresh]
        rows.append(
            [
                course.name,
                str(course.steps[-1]),
                *numbers,
                f"{course.held_out_kl_over_ml:.2f}",
                *fresh,
            ]
        )
    return rows


EXPERIMENT = Experiment("recipes", CAPTION, CoursesConfig(), TrainingCourses, compute, reads, table)
