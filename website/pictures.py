"""Draws the two pictures of the quickstart into docs/img.

Run with: python -m website.pictures
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

import sih
from sih.results.style import lag_colour, paper_style

FOLDER = Path(__file__).parents[1] / "docs" / "img"
SHOWN = 24
"""Queries and keys of the attention maps that are shown."""
PANELS = {
    "1.1": "layer 1\ncompares with parents",
    "2.1": "layer 2, first head\naverages",
    "3.1": "layer 3\nselects",
}


def quickstart_task() -> tuple[sih.Task, sih.Batch]:
    """Return the task and the sequences of docs/quickstart.md."""
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=64)
    return task, sih.sample(task, size=512, rng=1)


def posterior(folder: Path = FOLDER) -> None:
    """Draw the posterior of the lags along the first sequence."""
    task, batch = quickstart_task()
    figure, axes = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
    for column, lag in enumerate(task.lags):
        along = sih.lag_posterior(batch.tokens, task)[0, :, column]
        axes.plot(along, color=lag_colour(lag), label=f"lag {lag}")
    axes.set(xlabel="position", ylabel="posterior", ylim=(-0.03, 1.03))
    axes.legend(frameon=False)
    figure.savefig(folder / "quickstart-posterior.svg", metadata={"Date": None})


def attention(folder: Path = FOLDER) -> None:
    """Draw the attention of one head per layer of the paper's circuit."""
    task, batch = quickstart_task()
    trace = sih.construct(task).trace(batch.tokens[:1])
    figure, axes = plt.subplots(1, len(PANELS), figsize=(6.4, 2.5), layout="constrained")
    for panel, (head, title) in zip(axes, PANELS.items(), strict=True):
        shown = trace[f"{head}/attention"][0, :SHOWN, :SHOWN]
        panel.imshow(shown / shown.amax(dim=1, keepdim=True), cmap="Blues")
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="key", xticks=[0, 10, 20], yticks=[0, 10, 20])
    axes[0].set_ylabel("query")
    figure.savefig(folder / "quickstart-attention.svg", metadata={"Date": None})


if __name__ == "__main__":
    with paper_style():
        posterior()
        attention()
