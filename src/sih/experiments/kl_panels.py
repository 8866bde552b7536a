"""KL along the sequence, a panel a lag set: the form of the paper's Fig. 4, and the means behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from sih.experiments import style

Look = tuple[str, Any, float]
"""Colour, dashes, line width."""


def draw_panels(
    lag_sets: Sequence[Sequence[int]],
    titles: Sequence[str],
    kl: Sequence[Mapping[str, list[float]]],
    kl_error: Sequence[Mapping[str, list[float]]],
    looks: Mapping[str, Look],
) -> Figure:
    """From the first position whose next token a lag has made; bands are one standard error either way."""
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 4.2))
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        for ax, lags, title, means, errors in zip(axes.flat, lag_sets, titles, kl, kl_error, strict=True):
            for name, values in means.items():
                colour, dashes, width = looks[name]
                first = lags[-1] - 1
                positions = torch.arange(first + 1, len(values) + 1)
                y = torch.tensor(values[first:]).clamp_min(1e-9)
                spread = torch.tensor(errors[name][first:])
                ax.plot(positions, y, color=colour, linestyle=dashes, lw=width, label=name)
                ax.fill_between(positions, (y - spread).clamp_min(1e-9), y + spread, color=colour, alpha=0.15, lw=0)
                ax.set_xlim(0, len(values))
            ax.set_title(title)
            ax.set_yscale("log")
            ax.set_ylim(2e-6, 2)
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        for ax in axes[-1]:
            ax.set_xlabel("position $i$ in the sequence")
        for ax in axes[:, 0]:
            ax.set_ylabel("KL to the true law (nats)")
        handles, labels = axes.flat[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def braces(lags: Sequence[int]) -> str:
    return "{" + ",".join(map(str, lags)) + "}"


def mean(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean(dim=0)


def standard_error(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).std(dim=0) / math.sqrt(len(values))
