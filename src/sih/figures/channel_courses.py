"""The two channels along training, a column for each run."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.channel_course import ChannelCourse, ChannelCourses
from sih.experiments.experiment import braces
from sih.figures import style
from sih.figures.channel_bars import COSTS, SHARES


def draw_channel_courses(data: ChannelCourses) -> Figure:
    """Draw what a change costs above, and shares below, against the step."""
    columns = max(len(data.courses), 1)
    with style.paper_figure(max(3.2 * columns, 4.0), 4.4) as figure:
        axes = figure.subplots(2, columns, squeeze=False, sharex="col", sharey="row")
        for (above, below), course in zip(axes.T, data.courses, strict=False):
            _draw_costs(above, course)
            _draw_shares(below, course)
        if data.courses:
            axes[0, 0].set_ylabel("mean KL / ML")
            axes[1, 0].set_ylabel("share")
            handles: dict[str, Any] = {}
            for ax in (axes[0, 0], axes[1, 0]):
                handles.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
            figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4)
        else:
            axes[0, 0].set_title("no weights were kept along the way here")
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
    ax.set_title(f"{course.name}\n{braces(course.lags)}, length {course.length}, {how}{end}", fontsize=7)


def _draw_shares(ax: Axes, course: ChannelCourse) -> None:
    steps = [point.step for point in course.points]
    for name in ("looked", "carried", "direct"):
        pairs = [point.channels.shares[name] for point in course.points]
        mean, error = ([pair[n] for pair in pairs] for n in (0, 1))
        ax.errorbar(steps, mean, yerr=error, color=SHARES[name], marker=".", label=f"evidence {name}")
    selected, diagonal = ([getattr(point, what)[0] for point in course.points] for what in ("selected", "diagonal"))
    ax.plot(steps, selected, color="black", ls="--", label="layer 3 on the true lag's token")
    ax.plot(steps, diagonal, color="#888888", ls=":", label="layer 2's scores by offset")
    ax.set(xlabel="step", ylim=(-0.05, 1.02))
