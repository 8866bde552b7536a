"""Training runs: KL relative to maximum likelihood, one panel per group of runs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.paper.recipes import Course, TrainingCourses
from sih.results import style
from sih.results.beside import heads_label
from sih.results.models import circuit_heads
from sih.results.tables import Rows, braces
from sih.training.config import TrainConfig

CAPTION = (
    "Mean KL to the true next-token distribution beyond the first max_lag positions, except the "
    "last, which has no next token, as a multiple of maximum likelihood's (ML) on the same "
    "held-out sequences, during the training of "
    "every shipped model. The grey band is where the Bayesian model average (BMA) lies for the "
    "panel's models. One "
    "run each, nothing is averaged. The numbers are of the trained models, on fresh sequences "
    "(`sih.evaluate`)."
)

FLAGSHIP = TrainConfig()
"""The model with a panel for all runs of its kind and lags."""

_COLOURS = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PURPLE,
    style.SKY,
    style.RED,
    style.BLACK,
    style.YELLOW,
)


def draw(data: TrainingCourses) -> Figure:
    """Draw one panel per group: the paper's training, the flagship's seeds, other lags,
    models and kinds.
    """
    places = [place(course) for course in data.courses]
    groups = sorted(
        {group for group, _ in places}, key=lambda group: (group[0], len(group[1]), group[1])
    )
    columns = min(2, max(1, len(groups)))
    rows = -(-max(1, len(groups)) // columns)
    with style.paper_figure(style.PAGE, 2.1 * rows + (0.2 if data.missing else 0)) as figure:
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for number, ax in enumerate(grid.flat):
            if number >= len(groups):
                ax.set_visible(False)
                continue
            found = zip(data.courses, places, strict=True)
            _draw_group(
                ax, [(label, course) for course, (group, label) in found if group == groups[number]]
            )
            ax.set_title(groups[number][1])
            if number >= len(groups) - columns:
                ax.set_xlabel("step")
        for ax in grid[:, 0]:
            ax.set_ylabel("held-out KL / ML's")
        if data.courses:
            first = data.courses[0]
            for word, height in (("ML", 1.0), ("BMA", first.bma / first.ml)):
                grid[0, 0].annotate(
                    word, (1, height), xytext=(-2, -7), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="right", fontsize=6,
                )  # fmt: skip
        if data.missing:
            figure.supxlabel(style.not_shipped(data.missing), fontsize=6)
    return figure


def place(course: Course) -> tuple[tuple[int, str], str]:
    """Return a run's panel, by rank and title, and the run's label there."""
    of, lags = course.compared, braces(course.lags)
    heads, seed = heads_label(of.heads, of.dim), of.seeds[0]
    suffix = f", seed {seed}" if seed else ""
    if course.states != FLAGSHIP.task.states:
        suffix += f", {course.states} states"
    if of.plain:
        return (-1, "trained as in the paper"), course.name.removeprefix("paper-")
    if of.kind != FLAGSHIP.model.kind:
        return (3, of.kind), f"{lags} {heads}{suffix}"
    if of.heads != circuit_heads(course.lags) or of.dim:
        return (2, f"lags {lags}, other models"), f"{heads}{suffix}"
    if (course.lags, course.states) != (FLAGSHIP.task.lags, FLAGSHIP.task.states):
        return (1, "other lags or states"), f"{lags} {heads}{suffix}"
    return (0, f"lags {lags}, heads {heads}"), f"seed {seed}"


def _draw_group(ax: Axes, courses: list[tuple[str, Course]]) -> None:
    bayes = [course.bma / course.ml for _, course in courses]
    ax.axhspan(0.97 * min(bayes), 1.03 * max(bayes), color=style.BLACK, alpha=0.15, lw=0)
    ax.axhline(1, color=style.RED, linestyle=(0, (1, 1)), lw=1)
    for number, (name, course) in enumerate(courses):
        colour, dashes = _COLOURS[number % 8], "-" if number < 8 else (0, (3, 1))
        label = f"{name}: {course.kl_over_ml:.2f}"
        ax.plot(
            course.steps,
            course.kl / course.ml,
            color=colour,
            linestyle=dashes,
            lw=1,
            label=label,
        )
    ax.set_yscale("log")
    ax.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20, 50, 100], [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0.35, 120)
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
    ax.legend(
        loc="upper left",
        bbox_to_anchor=(1, 1),
        fontsize=6,
        handlelength=1.2,
        labelspacing=0.25,
        borderaxespad=0,
    )


def table(data: TrainingCourses) -> Rows:
    """Return one row per run: its final quality."""
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
                str(course.steps[-1].item()),
                *numbers,
                f"{course.held_out_kl_over_ml:.2f}",
                *fresh,
            ]
        )
    return rows
