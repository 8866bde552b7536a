"""The success rate of each setting of a sweep, and the quality of its runs."""

from matplotlib.figure import Figure

from sih.beyond.sweep.success_rates import SUCCESS, SuccessRates
from sih.results import style


def draw(data: SuccessRates) -> Figure:
    """Draw one row per setting: the success rate with its interval, and every finished
    run's held-out KL / ML.
    """
    rows = range(len(data.settings))
    with style.paper_figure(style.PAGE, 0.9 + 0.28 * len(data.settings)) as figure:
        rate, ratios = figure.subplots(1, 2, sharey=True)
        for row, setting in zip(rows, data.settings, strict=True):
            low, high = setting.interval
            rate.plot((100 * low, 100 * high), (row, row), color=style.BLUE, linewidth=1.0)
            if setting.runs:
                rate.plot(
                    100 * setting.succeeded / setting.runs, row, "o", color=style.BLUE, markersize=4
                )
            counts = f"{setting.succeeded} of {setting.runs}"
            rate.annotate(
                counts,
                (1.02, row),
                xycoords=("axes fraction", "data"),
                va="center",
                annotation_clip=False,
                size="small",
            )
            good = [ratio <= SUCCESS for ratio in setting.ratios]
            colours = [style.BLUE if each else style.RED for each in good]
            ratios.scatter(
                setting.ratios, [row] * len(setting.ratios), c=colours, s=9, linewidths=0
            )
        ratios.axvline(SUCCESS, color=style.BLACK, linewidth=0.8, linestyle=(0, (1, 1)))
        rate.set(xlim=(-2, 102), xlabel="runs that succeed (%), 95 % interval", yticks=list(rows))
        rate.set_yticklabels([setting.label for setting in data.settings])
        rate.set_ylim(len(data.settings) - 0.5, -0.5)
        ratios.set(
            xlabel=f"held-out KL / ML of each run; success is at most {SUCCESS:g}", xscale="log"
        )
        ticks = [
            tick for tick in (0.7, 1, 1.5, 2, 3, 5, 10, 20) if _within(tick, ratios.get_xlim())
        ]
        ratios.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        ratios.set_xticks([], minor=True)
    return figure


def _within(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]
