"""Trained models and circuits. A band over several seeds is their range."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure

from sih.paper.kl_panels import CIRCUITS, CUT, Band, draw_panels, least_heads_title
from sih.paper.trained import TrainedConfig, TrainedCurves, TrainedPanel
from sih.results import style
from sih.results.curves import Compared, Panel, mean_kl_table
from sih.results.tables import Rows, braces

_ORDER = ("BMA", "Bayes-optimal construction", "ML", "construction", "construction, 1 head")

_BESIDE_TRAINED = {name: CIRCUITS[name] for name in _ORDER}

_BESIDE_TRAINED["two lags, 1 head"] = (style.BLUE, (0, (3, 1, 1, 1)), 1.2)

_SHADES = {
    "standard": (style.GREEN, "#00402E", "#7FCFB9", "#5B7F00"),
    "disentangled": (style.PURPLE, "#7A1F5C", "#E8B9D3", "#5E4FA2"),
}
"""Colours of a kind of model, one per training, the paper's first."""

_PLAIN = 2.0
"""Factor in line width for models trained as in the paper."""

_HEADS: dict[str, tuple[Any, float]] = {"K heads": ("-", 1.2), "1 head": ((0, (4, 1)), 0.9)}

_OTHER_DASHES: tuple[Any, ...] = ((0, (2, 1)), (0, (1, 0.6)), (0, (3, 1, 1, 1)), (0, (6, 1)))


def caption(config: TrainedConfig) -> str:
    """Return the caption for the requested tasks."""
    return (
        "KL divergence of the predicted from the true next-token distribution (nats) along the sequence, "
        "for circuits written "
        f"by hand (lambda = {config.lam:g}, beta = {config.beta:g}), trained transformers, maximum "
        f"likelihood (ML) and "
        "the Bayesian model average (BMA). A panel is of one matrix and one length. K is the least number of "
        "second-layer heads that keep lags apart, which the construction has. Unaided Adam is the paper's way of "
        "training; other starts and optimisers are ours. Models: every shipped one of three layers with as many "
        "second-layer heads as the circuit needs, or with one, and all that are trained as in the paper. Means over "
        "fresh sequences of the panel's matrix, for models the first of those of the other curves; bands are one "
        "standard error over sequences, or the range over seeds where there are several. The KL is averaged over the "
        "lag given the tokens. The last position is left out: it has no next token, so that no model was trained "
        f"there. {CUT} The table has means on these sequences; `sih models` has each model's on 8,192 or more."
    )


def draw(data: TrainedCurves) -> Figure:
    """Draw trained models and circuits. A band over several seeds is their range."""
    return draw_panels(
        data.panels,
        [title_of(panel) for panel in data.panels],
        _BESIDE_TRAINED | _trained_looks(data.panels),
        [_seed_ranges(panel) for panel in data.panels],
        note=style.not_shipped(data.missing),
        columns=2,
    )


def title_of(panel: TrainedPanel) -> str:
    """Return a panel's title: lags, length, matrix and K."""
    where = f"T = {panel.length}, {panel.matrix}"
    return f"{braces(panel.lags)}, {least_heads_title(panel)}, {where}"


def _trained_looks(panels: Sequence[Panel]) -> dict[str, style.Look]:
    """Return a colour for each kind and training, and dashes for each number of heads."""
    found: dict[str, Compared] = {}
    for panel in panels:
        found |= {label: of for label, of in panel.compared.items() if of.trained}
    looks: dict[str, style.Look] = {}
    for kind in dict.fromkeys((*_SHADES, *(of.kind for of in found.values()))):
        own = {label: of for label, of in found.items() if of.kind == kind}
        ways = sorted(
            {of.recipe for of in own.values()}, key=lambda way: (way != "unaided Adam", way)
        )
        shades = dict(zip(ways, itertools.cycle(_SHADES.get(kind, ("#8C6D1F", style.YELLOW)))))
        others = itertools.cycle(_OTHER_DASHES)
        for label, of in sorted(own.items(), key=lambda item: ways.index(item[1].recipe)):
            name = next((name for name in _HEADS if f", {name}, {of.recipe}" in label), "")
            usual = name and label.endswith(of.recipe)
            dashes, width = _HEADS[name] if usual else (next(others), 0.9)
            looks[label] = (shades[of.recipe], dashes, width * (_PLAIN if of.plain else 1))
    return looks


def _seed_ranges(panel: TrainedPanel) -> dict[str, Band]:
    """Return the lowest and the highest seed at every position, for curves of several
    seeds.
    """
    several = {label: of.models for label, of in panel.compared.items() if len(of.models) > 1}
    found = {}
    for label, names in several.items():
        each = torch.stack([panel.models[name].kl.mean for name in names])
        found[label] = each.amin(dim=0), each.amax(dim=0)
    return found


def table(data: TrainedCurves) -> Rows:
    """Return mean KL beyond the first max_lag positions, with its standard error over
    sequences.
    """
    return mean_kl_table(data.panels, titles=[title_of(panel) for panel in data.panels])
