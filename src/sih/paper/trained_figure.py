"""Trained models beside the circuits. A band over several seeds is their range."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from matplotlib.figure import Figure

from sih.paper.kl_panels import CIRCUITS, Band, circuits_title, draw_panels
from sih.paper.trained import (
    TrainedCurves,
    TrainedPanel,
)
from sih.results import style
from sih.results.curves import (
    Panel,
    mean_kl_table,
)
from sih.results.models import (
    circuit_heads,
)
from sih.results.tables import Rows

CAPTION = (
    "KL divergence of the predicted from the true next-token distribution (nats) along the sequence, for circuits "
    "written by hand, trained transformers, maximum likelihood (ML) and the Bayesian model average (BMA); 5 states. "
    "Models are trained as in the paper, at the length given, or by preset auto or harmonic, at length 128 "
    "(`preset`): every shipped model of three layers with as many second-layer heads as the circuit needs, or with "
    "one, and all that are trained as in the paper. Means over fresh sequences of the matrix the models were trained "
    "on, the same for all curves of a panel; bands are one standard error over sequences, or the range over seeds "
    "where there are several. The KL is averaged over the lag given the tokens. The last position is left out: it "
    "has no next token, so that no model was trained there. The table has means on these sequences; `sih models` has "
    "each model's on 8,192 or more."
)

_ORDER = ("BMA", "Bayes-optimal construction", "ML", "construction", "construction, 1 head")

_BESIDE_TRAINED = {name: CIRCUITS[name] for name in _ORDER}

_BESIDE_TRAINED["two lags, 1 head"] = (style.BLUE, (0, (3, 1, 1, 1)), 1.2)

_KINDS = {"standard": style.GREEN, "disentangled": style.PURPLE}

_PLAIN = 2.0
"""How much wider the lines of models are that were trained as the paper trains."""

_OTHER_DASHES: tuple[Any, ...] = ((0, (2, 1)), (0, (1, 0.6)), (0, (3, 1, 1, 1)), (0, (6, 1)))


def draw(data: TrainedCurves) -> Figure:
    """Draw trained models beside the circuits. A band over several seeds is their range."""
    return draw_panels(
        data.panels,
        [f"{circuits_title(panel)}; length {panel.length}" for panel in data.panels],
        _BESIDE_TRAINED | _trained_looks(data.panels),
        [_seed_ranges(panel) for panel in data.panels],
        floor=0.2
        / data.config.sequences,  # late errors are rare and cost some tenths of a nat each
        log_positions=True,
        note=style.not_shipped(data.missing),
    )


def _trained_looks(panels: Sequence[Panel]) -> dict[str, style.Look]:
    """Give each kind of model a colour, solid with as many heads as are needed, dashed with one, or with others."""
    found = {
        label: (of, panel.lags)
        for panel in panels
        for label, of in panel.compared.items()
        if of.trained
    }
    looks: dict[str, style.Look] = {}
    for kind in dict.fromkeys((*_KINDS, *(of.kind for of, _ in found.values()))):
        own = {label: (of.heads, lags) for label, (of, lags) in found.items() if of.kind == kind}
        usual = [label for label, (heads, lags) in own.items() if heads == circuit_heads(lags)]
        single = [
            label for label, (heads, _) in own.items() if label not in usual and heads == (1, 1, 1)
        ]
        others = [label for label in own if label not in (*usual, *single)]
        lines = dict.fromkeys(usual, ("-", 1.2)) | dict.fromkeys(single, ((0, (4, 1)), 0.9))
        lines |= {
            label: (dashes, 0.9) for label, dashes in zip(others, itertools.cycle(_OTHER_DASHES))
        }
        for label, (dashes, width) in lines.items():
            looks[label] = (
                _KINDS.get(kind, style.YELLOW),
                dashes,
                width * (_PLAIN if found[label][0].plain else 1),
            )
    return looks


def _seed_ranges(panel: TrainedPanel) -> dict[str, Band]:
    """Find the lowest and the highest seed at every position, of the curves that have several."""
    several = {label: of.models for label, of in panel.compared.items() if len(of.models) > 1}
    found = {}
    for label, names in several.items():
        each = torch.stack([panel.models[name].kl.mean for name in names])
        found[label] = each.amin(dim=0), each.amax(dim=0)
    return found


def table(data: TrainedCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over sequences."""
    return mean_kl_table(data.panels)
