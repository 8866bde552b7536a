"""KL during training relative to maximum likelihood, a panel for each group of runs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.training_courses import Course, TrainingCourses
from sih.figures import style
from sih.figures.panels import not_shipped

_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.RED, style.BLACK, style.YELLOW)


def draw_courses(data: TrainingCourses) -> Figure:
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
