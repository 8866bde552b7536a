"""A training run's loss and KL, beside the reference predictors on the same held-out sequences."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from sih.figures import style
from sih.runs.run import Run


@dataclass(frozen=True)
class Curves:
    """What the figure shows: loss and mean KL against steps, and the last KL along the sequence."""

    name: str
    max_lag: int
    loss_steps: list[int]
    loss: list[float]
    kl_steps: list[int]
    kl: list[float]
    ml: float
    bma: float
    along: dict[str, list[float]]


def compute(run: Run) -> Curves:
    """Read from the run's metrics; nothing is trained or evaluated."""
    losses, found = [line for line in run.metrics if "loss" in line], run.evaluations
    first, last = found[0], found[-1]
    return Curves(
        run.name,
        run.task.max_lag,
        [line["step"] for line in losses],
        [line["loss"] for line in losses],
        [line["step"] for line in found],
        [line["kl"] for line in found],
        first["ml"],
        first["bma"],
        {"trained": last["kl_along"], "ML": first["ml_along"], "BMA": first["bma_along"]},
    )


def draw(curves: Curves) -> Figure:
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 2.2))
        loss, kl, along = figure.subplots(1, 3)
        loss.plot(curves.loss_steps, curves.loss, color=style.BLUE)
        loss.set(xlabel="step", ylabel="cross-entropy (nats)", title="Training loss")
        kl.plot(curves.kl_steps, curves.kl, color=style.BLUE, label="trained")
        kl.axhline(curves.ml, color=style.RED, linestyle=(0, (1, 1)), label="ML")
        kl.axhline(curves.bma, color=style.BLACK, linewidth=0.8, label="BMA")
        kl.set(xlabel="step", ylabel="mean KL (nats)", yscale="log", title="KL past the first max_lag")
        kl.legend()
        looks = {"trained": (style.BLUE, "-"), "ML": (style.RED, (0, (1, 1))), "BMA": (style.BLACK, "-")}
        for name, values in curves.along.items():
            positions = range(curves.max_lag, len(values))
            colour, line = looks[name]
            along.plot(positions, [max(v, 1e-6) for v in values[curves.max_lag :]], color=colour, linestyle=line)
        along.set(xlabel="position", ylabel="KL (nats)", yscale="log", title="KL along the sequence, last")
    return figure
