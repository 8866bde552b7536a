"""One training run: its loss, and the KL of its predictions."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.predictors.metrics import scored_positions
from sih.results import style
from sih.training.runs.run import Run


def draw_training(data: Run) -> Figure:
    """Draw loss and mean KL against steps, and the last KL by position, from the run's
    metrics.
    """
    losses, found = [line for line in data.metrics if "loss" in line], data.evaluations
    if not found:
        raise ValueError(f"nothing of {data.name} has been measured yet")
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
