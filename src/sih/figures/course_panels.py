"""Training runs: KL relative to maximum likelihood, a panel for each group of runs, and one run with its loss."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.training_courses import Course, TrainingCourses
from sih.metrics import scored_positions
from sih.results import style
from sih.results.beside import heads_label
from sih.results.experiment import braces
from sih.results.models import usual_heads
from sih.runs.run import Run
from sih.training.config import TrainConfig

FLAGSHIP = TrainConfig()
"""Whose kind and lags have a panel of their own."""
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


def draw_courses(data: TrainingCourses) -> Figure:
    """Draw a panel for each group: the paper's training, the flagship's seeds, other lags, models and kinds."""
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
    """Find the panel a run belongs to, by its rank and title, and the run's label there."""
    of, lags = course.compared, braces(course.lags)
    heads, seed = heads_label(of.heads, of.dim), of.seeds[0]
    suffix = f", seed {seed}" if seed else ""
    if of.plain:
        return (-1, "trained as the paper trains"), course.name.removeprefix("paper-")
    if of.kind != FLAGSHIP.model.kind:
        return (3, of.kind), f"{lags} {heads}{suffix}"
    if of.heads != usual_heads(course.lags) or of.dim:
        return (2, f"lags {lags}, other models"), f"{heads}{suffix}"
    if course.lags != FLAGSHIP.task.lags:
        return (1, "other lags"), f"{lags} {heads}{suffix}"
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
            [kl / course.ml for kl in course.kl],
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


def draw_training(data: Run) -> Figure:
    """Draw loss and mean KL against steps, and the last KL by position, from the run's metrics."""
    losses, found = [line for line in data.metrics if "loss" in line], data.evaluations
    first, last, max_lag = found[0], found[-1], data.task.max_lag
    scored = scored_positions(max_lag, data.task.length)
    with style.paper_figure(style.PAGE, 2.2) as figure:
        loss, kl, by_position = figure.subplots(1, 3)
        loss.plot(
            [line["step"] for line in losses], [line["loss"] for line in losses], color=style.BLUE
        )
        loss.set(xlabel="step", ylabel="cross-entropy (nats)", title="Training loss")
        kl.plot(
            [line["step"] for line in found],
            [line["kl"] for line in found],
            color=style.BLUE,
            label="trained",
        )
        kl.axhline(first["ml"], color=style.RED, linestyle=(0, (1, 1)), label="ML")
        kl.axhline(first["bma"], color=style.BLACK, linewidth=0.8, label="BMA")
        kl.set(
            xlabel="step", ylabel="mean KL (nats)", yscale="log", title="KL past the first max_lag"
        )
        kl.legend()
        looks = {
            "kl": (last, style.BLUE, "-"),
            "ml": (first, style.RED, (0, (1, 1))),
            "bma": (first, style.BLACK, "-"),
        }
        for name, (line, colour, dashes) in looks.items():
            values = [max(value, 1e-6) for value in line[f"{name}_along"][scored]]
            by_position.plot(
                range(max_lag, max_lag + len(values)), values, color=colour, linestyle=dashes
            )
        by_position.set(
            xlabel="position", ylabel="KL (nats)", yscale="log", title="KL along the sequence, last"
        )
        by_position.set_ylim(bottom=1e-5)
    return figure
