"""What was trained: mean KL over that of maximum likelihood against steps, for every shipped model.

Read from the runs' own metrics; nothing is evaluated again. 1 is as good as maximum likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.artifacts.record_json import Saved
from sih.construction import heads_needed
from sih.figures import style
from sih.figures.kl_curves import braces, not_shipped
from sih.runs.run_store import RunStore
from sih.training.config import TrainConfig

NAME = "recipes"
CAPTION = (
    "Mean KL to the true next-token law past the first max_lag positions, as a multiple of maximum likelihood's (ML) "
    "on the same held-out sequences, during the training of every shipped model. The grey band is where the Bayesian "
    "model average (BMA) lies for the panel's models. One run each, nothing is averaged; numbers are those at the end."
)

_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.RED, style.BLACK, style.YELLOW)


@dataclass(frozen=True)
class Config:
    """Shipped models by name, or folders of runs; all that there are if none is named."""

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
class Data(Saved):
    courses: list[Course]
    missing: list[str]


def config() -> Config:
    return Config()


def models(config: Config, store: RunStore) -> tuple[str, ...]:
    """The trained models it reads."""
    return config.models or tuple(store.names())


def compute(config: Config, store: RunStore) -> Data:
    runs, missing = store.finished(models(config, store))
    courses = []
    for run in runs.values():
        found = run.evaluations
        steps, kl = [line["step"] for line in found], [line["kl"] for line in found]
        group, label = place(run.config)
        courses.append(Course(run.name, group, label, steps, kl, found[0]["ml"], found[0]["bma"]))
    return Data(courses, missing)


def place(config: TrainConfig) -> tuple[str, str]:
    """The panel a run belongs to, and its name there."""
    lags, heads = braces(config.lags), f"[{','.join(map(str, config.heads))}]"
    seed = f", seed {config.seed}" if config.seed else ""
    enough = (1, heads_needed(config.lags), 1)
    flagship = TrainConfig()
    if config.model == "disentangled":
        return "disentangled", f"{lags} {heads}{seed}"
    if config.heads == enough and config.dim == flagship.dim:
        if config.lags == flagship.lags:
            return f"lags {lags}, heads {heads}", f"seed {config.seed}"
        return "other lags", f"{lags} {heads}{seed}"
    dim = f", d={config.dim}" if config.dim != flagship.dim else ""
    return f"lags {lags}, other models", f"{heads}{dim}{seed}"


def draw(data: Data) -> Figure:
    """A panel a group: the flagship's seeds, other lags, other models by their lags, the disentangled ones."""
    order = ("heads", "other lags", "other models", "disentangled")
    found = {course.group for course in data.courses}
    groups = [group for words in order for group in sorted(found, key=lambda g: (len(g), g)) if words in group]
    columns = min(3, max(1, len(groups)))
    rows = -(-max(1, len(groups)) // columns)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 2.3 * rows + (0.2 if data.missing else 0)))
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for number, ax in enumerate(grid.flat):
            if number >= len(groups):
                ax.set_visible(False)
                continue
            _draw_group(ax, groups[number], [course for course in data.courses if course.group == groups[number]])
            if number >= len(groups) - columns:
                ax.set_xlabel("step")
        for ax in grid[:, 0]:
            ax.set_ylabel("mean KL / ML's")
        if data.courses:
            first = data.courses[0]
            for word, height in (("ML", 1.0), ("BMA", first.bma / first.ml)):
                grid[0, 0].annotate(word, (0, height), xytext=(0, 3), textcoords="offset points", fontsize=6)
        if data.missing:
            figure.supxlabel(not_shipped(data.missing), fontsize=6)
    return figure


def _draw_group(ax: Axes, group: str, courses: list[Course]) -> None:
    bayes = [course.bma / course.ml for course in courses]
    ax.axhspan(0.97 * min(bayes), 1.03 * max(bayes), color=style.BLACK, alpha=0.15, lw=0)
    ax.axhline(1, color=style.RED, linestyle=(0, (1, 1)), lw=1)
    for number, course in enumerate(courses):
        colour, dashes = _COLOURS[number % 8], "-" if number < 8 else (0, (3, 1))
        label = f"{course.label}: {course.kl[-1] / course.ml:.2f}"
        ax.plot(course.steps, [kl / course.ml for kl in course.kl], color=colour, linestyle=dashes, lw=1, label=label)
    ax.set_yscale("log")
    ax.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20, 50, 100], [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0.45, 120)
    ax.set_title(group)
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
    ax.legend(
        loc="upper right", fontsize=6, handlelength=1.2, labelspacing=0.25, columnspacing=0.8,
        ncols=1 if len(courses) < 6 else 2,
    )  # fmt: skip


def table(data: Data) -> list[list[str]]:
    """A row a run: where it ended."""
    rows = [["model", "steps", "mean KL", "ML", "BMA", "x ML"]]
    for course in data.courses:
        numbers = [f"{value:.4f}" for value in (course.kl[-1], course.ml, course.bma)]
        rows.append([course.name, str(course.steps[-1]), *numbers, f"{course.kl[-1] / course.ml:.2f}"])
    return rows
