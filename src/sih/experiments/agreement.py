"""How far trained models agree with the construction, in numbers (paper, Sec. 6, "Trained vs constructed ...").

Every model on fresh sequences of its own task; what is measured is in `sih.experiments.comparison`.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments import style
from sih.experiments.attention import Measured, measured
from sih.experiments.comparison import KEYS, LAYERS, Agreement, Reference, agreement, headline, reference
from sih.experiments.counterparts import find_runs
from sih.experiments.kl_panels import braces
from sih.task import sample

NAME = "agreement"
CAPTION = (
    "Share of the third layer's attention on the token that the true lag copies (solid) and on those of all lags "
    "together (dotted), against the position, for the models standard-LAGS and disentangled-LAGS and for the "
    "construction; black, the posterior of the true lag given the sequence so far. Means over fresh sequences of each "
    "model's task, bands one standard error over sequences. Lag 1 copies the query's own token, which the residual "
    "stream holds anyway: there a low share need not mean a wrong choice."
)


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
class Agreements:
    """By the model's name; `seeds` has means over the seeds of one configuration and their standard errors, of a
    correlation without its sign (a first layer may follow log P or its negative, and says as much either way)."""

    config: Config
    models: dict[str, Agreement]
    seeds: dict[str, dict[str, Measured]]
    missing: list[str]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Agreements:
        settings = Config(**{**values["config"], "models": tuple(values["config"]["models"])})
        found = {name: Agreement(**_with_tuples(entry)) for name, entry in values["models"].items()}
        seeds = {name: {key: _pair(value) for key, value in entry.items()} for name, entry in values["seeds"].items()}
        return cls(settings, found, seeds, list(values["missing"]))


def config() -> Config:
    return Config()


def models(config: Config) -> tuple[str, ...]:
    return config.models


def compute(config: Config) -> Agreements:
    """Models of the same task see the same sequences, and the construction runs on them once."""
    runs, absent = find_runs(config.models)
    if not runs:
        raise ValueError(f"none of the models to compare is there: {', '.join(config.models)}")
    references: dict[str, Reference] = {}
    found = {}
    for name, run in runs.items():
        heads = run.config.heads[1] if len(run.config.heads) == 3 else None
        same = json.dumps([run.task.to_dict(), heads])
        if same not in references:
            batch = sample(run.task, config.sequences, rng=torch.Generator().manual_seed(config.seed))
            references[same] = reference(run.task, batch, heads)
        found[name] = agreement(run.model, references[same])
    return Agreements(config, found, _over_seeds(found), [f"{name}: not trained yet" for name in absent])


def _over_seeds(found: dict[str, Agreement]) -> dict[str, dict[str, Measured]]:
    groups: dict[str, list[Agreement]] = {}
    for name, entry in found.items():
        groups.setdefault(re.sub(r"-seed\d+$", "", name), []).append(entry)
    return {
        base: {
            key: measured(torch.tensor([_unsigned(key, headline(entry)[key][0]) for entry in entries]))
            for key in headline(entries[0])
        }
        for base, entries in groups.items()
        if len(entries) > 1
    }


def _unsigned(key: str, value: float) -> float:
    return abs(value) if key.startswith("correlation") else value


def _with_tuples(entry: dict[str, Any]) -> dict[str, Any]:
    out = dict(entry)
    for name in ("lags", "heads", "counterpart", "parents"):
        out[name] = tuple(entry[name])
    for name in ("correlation", "variation", "uniform", "shares", "selected_by_lag"):
        out[name] = {key: _pair(value) for key, value in entry[name].items()}
    return out


def _pair(value: list[float]) -> Measured:
    return value[0], value[1]


def draw(data: Agreements) -> Figure:
    """A panel a lag set: models with as many heads as the construction, one of each kind."""
    panels: dict[tuple[int, ...], dict[str, Agreement]] = {}
    for name, entry in data.models.items():
        plain = re.fullmatch(r"(standard|disentangled)-[\d.]+", name)
        if plain and len(entry.heads) == 3:
            panels.setdefault(entry.lags, {})[name] = entry
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.55 + 1.75 * rows))
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, (lags, entries) in zip(axes.flat, panels.items(), strict=False):
            for name, entry in entries.items():
                kind = name.partition("-")[0]
                colour = style.BLUE if kind == "standard" else style.GREEN
                _curve(ax, entry, "selected", colour, "-", f"{kind}, true lag")
                _curve(ax, entry, "candidates", colour, (0, (1, 1)), f"{kind}, all lags")
            longest = max(entries.values(), key=lambda entry: len(entry.along["posterior"]))
            _curve(ax, longest, "constructed", style.ORANGE, (0, (4, 1)), "construction, true lag")
            _curve(ax, longest, "posterior", style.BLACK, "-", "posterior of the true lag")
            ax.set_title(f"lags {braces(lags)}")
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        axes[0, 0].set_ylim(0, 1.03)
        for ax in axes[:, 0]:
            ax.set_ylabel("share of layer 3")
        for ax in axes[-1]:
            ax.set_xlabel("position $i$")
        handles = {
            label: handle for ax in axes.flat for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    return figure


def _curve(ax: Axes, entry: Agreement, what: str, colour: str, dashes: Any, label: str) -> None:
    mean, error = torch.tensor(entry.along[what]), torch.tensor(entry.along_error[what])
    positions = torch.arange(len(mean)) + entry.lags[-1]
    ax.plot(positions, mean, color=colour, linestyle=dashes, lw=0.9, label=label)
    ax.fill_between(positions, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def table(data: Agreements) -> list[list[str]]:
    """A row a model, then a row for every configuration with several seeds (errors over seeds there)."""
    keys = [f"correlation, {keys}" for keys in KEYS] + [f"variation, layer {layer}" for layer in LAYERS]
    keys += ["parents", "selected", "candidates"]
    rows = [["model", *keys, "posterior", "uniform, layers 1 2 3"]]
    for name, entry in data.models.items():
        numbers = headline(entry)
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
