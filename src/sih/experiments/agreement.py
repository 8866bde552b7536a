"""How far trained models agree with the construction, in numbers (paper, Sec. 6, "Trained vs constructed ...").

Every model on fresh sequences of its own task; what is measured is in `sih.analysis.distances`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.analysis.distances import KEYS, LAYERS, Agreement, Measured, compare, measured, summary
from sih.analysis.reference_circuit import Reference, run_reference
from sih.artifacts.record_json import Saved
from sih.experiments.compared import FRESH_SEED
from sih.figures import style
from sih.figures.kl_curves import Look, braces, double, legend, not_shipped
from sih.runs.run_store import RunStore
from sih.task import sample

NAME = "agreement"
CAPTION = (
    "Share of the third layer's attention on the token that the true lag copies (solid) and on those of all lags "
    "together (dotted), against the position, for the models standard-LAGS and disentangled-LAGS and for the "
    "construction; black, the posterior of the true lag given the sequence so far. Means over fresh sequences of each "
    "model's task, bands one standard error over sequences. Lag 1 copies the query's own token, which the residual "
    "stream holds anyway: there a low share need not mean a wrong choice."
)


_PLAIN = re.compile(r"(standard|disentangled)-[\d.]+")
_LOOKS: dict[str, Look] = {
    "standard, true lag": (style.BLUE, "-", 0.9),
    "standard, all lags": (style.BLUE, (0, (1, 1)), 0.9),
    "disentangled, true lag": (style.GREEN, "-", 0.9),
    "disentangled, all lags": (style.GREEN, (0, (1, 1)), 0.9),
    "construction, true lag": (style.ORANGE, (0, (4, 1)), 0.9),
    "posterior of the true lag": (style.BLACK, "-", 0.9),
}


@dataclass(frozen=True)
class Config:
    models: tuple[str, ...] = (
        *("standard-1.2.3", "standard-1.2.3-seed1", "standard-1.2.3-seed2", "standard-1.3.4", "standard-1.2.3.4.5"),
        *("standard-1.3", "standard-3.5.7", "standard-1.2", "standard-1.2.3-dim128"),
        *("disentangled-1.2.3", "disentangled-1.3.4", "disentangled-1.2.3.4.5", "disentangled-1.3"),
        *("disentangled-3.5.7", "disentangled-1.2"),
        *("standard-1.2.3-1.1.1", "standard-1.2.3.4.5-1.1.1", "standard-1.2.3.4.5-1.2.1"),
        *("standard-1.2.3.4.5-1.3.1", "standard-1.2.3.4.5-1.7.1"),
        *("standard-1.2.3-1.1", "standard-1.2.3-1.3", "standard-1.2.3-3.1", "standard-1.2.3-3.3"),
        *("standard-1.2.3-1.3.1.1", "standard-1.2.3-1.3.1.1.1"),
    )
    sequences: int = 64
    seed: int = 0


@dataclass(frozen=True)
class Agreements(Saved):
    """By the model's name; `seeds` has means over the seeds of one configuration and their standard errors, of a
    correlation without its sign (a first layer may follow log P or its negative, and says as much either way)."""

    config: Config
    models: dict[str, Agreement]
    seeds: dict[str, dict[str, Measured]]
    missing: list[str]


def config() -> Config:
    return Config()


def models(config: Config, store: RunStore) -> tuple[str, ...]:
    return config.models


@torch.no_grad()
def compute(config: Config, store: RunStore) -> Agreements:
    """Models of the same task see the same sequences, and the construction runs on them once."""
    found_runs, missing = store.finished(config.models)
    runs = list(found_runs.values())
    if not runs:
        raise ValueError(f"none of the models to compare is there: {', '.join(config.models)}")
    references: dict[str, Reference] = {}
    found = {}
    for run in runs:
        heads = run.config.heads[1] if len(run.config.heads) == 3 else None
        same = json.dumps([run.task.to_dict(), heads])
        if same not in references:
            batch = sample(run.task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
            references[same] = run_reference(run.task, batch, heads)
        trace = run.model.trace(references[same].batch.tokens)
        found[run.name] = compare(trace.attention, trace.scores, references[same])
    return Agreements(config, found, _over_seeds(found), missing)


def _over_seeds(found: dict[str, Agreement]) -> dict[str, dict[str, Measured]]:
    groups: dict[str, list[Agreement]] = {}
    for name, entry in found.items():
        groups.setdefault(re.sub(r"-seed\d+$", "", name), []).append(entry)
    return {
        base: {
            key: measured(torch.tensor([_unsigned(key, summary(entry)[key][0]) for entry in entries]))
            for key in summary(entries[0])
        }
        for base, entries in groups.items()
        if len(entries) > 1
    }


def _unsigned(key: str, value: float) -> float:
    return abs(value) if key.startswith("correlation") else value


def draw(data: Agreements) -> Figure:
    """A panel a lag set: the models of that name and nothing more, one of each kind."""
    panels: dict[tuple[int, ...], dict[str, Agreement]] = {}
    for name, entry in data.models.items():
        if _PLAIN.fullmatch(name):
            panels.setdefault(entry.lags, {})[name] = entry
    columns = max(1, min(3, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.6 + 1.75 * rows))
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, (lags, entries) in zip(axes.flat, panels.items(), strict=False):
            for name, entry in entries.items():
                kind = name.partition("-")[0]
                _curve(ax, entry, "selected", f"{kind}, true lag")
                _curve(ax, entry, "candidates", f"{kind}, all lags")
            longest = max(entries.values(), key=lambda entry: len(entry.by_position["posterior"]))
            _curve(ax, longest, "constructed", "construction, true lag")
            _curve(ax, longest, "posterior", "posterior of the true lag")
            ax.set_title(f"lags {braces(lags)}")
            double(ax, lags[-1], lags[-1] + len(longest.by_position["posterior"]))
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        axes[0, 0].set_ylim(0, 1.03)
        for ax in axes[:, 0]:
            ax.set_ylabel("share of layer 3")
        for ax in axes[-1]:
            ax.set_xlabel("position $i$")
        legend(figure, _LOOKS, 3, not_shipped([name for name in data.missing if _PLAIN.fullmatch(name)]))
    return figure


def _curve(ax: Axes, entry: Agreement, what: str, label: str) -> None:
    mean, error = torch.tensor(entry.by_position[what]), torch.tensor(entry.by_position_error[what])
    positions = torch.arange(len(mean)) + entry.lags[-1]
    colour, dashes, width = _LOOKS[label]
    ax.plot(positions, mean, color=colour, linestyle=dashes, lw=width, label=label)
    ax.fill_between(positions, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def table(data: Agreements) -> list[list[str]]:
    """A row a model, then a row for every configuration with several seeds (errors over seeds there)."""
    keys = [f"correlation, {keys}" for keys in KEYS] + [f"variation, layer {layer}" for layer in LAYERS]
    keys += ["layer 2, by offset", "layer 2, by positions", "parents", "selected", "candidates"]
    rows = [["model", *keys, "posterior", "uniform, layers 1 2 3"]]
    for name, entry in data.models.items():
        numbers = summary(entry)
        flat = " ".join(
            f"{entry.uniform[layer][0]:.2f}".replace("0.", ".") for layer in LAYERS if layer in entry.uniform
        )
        cells = [_cell(numbers[key]) if key in numbers else "" for key in keys]
        rows.append([name, *cells, _cell(entry.shares["posterior"]), flat])
    for base, numbers in data.seeds.items():
        cells = [_cell(numbers[key]) if key in numbers else "" for key in keys]
        rows.append([f"{base}, over seeds", *cells, "", ""])
    return rows


def _cell(value: Measured) -> str:
    return style.with_error(*value)
