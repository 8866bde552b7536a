r"""$\mathbb E[p_r/\sum_l p_l]$ for every true lag and every scored lag, exactly: the paper's figures of App. E."""

from __future__ import annotations

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from sih.artifacts.record_json import Saved
from sih.figures import style
from sih.theory.claim import ClaimTable, claim_table
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

NAME = "claim_expectations"
CAPTION = (
    "Expected normalised transition probability of every lag r, a panel for each true lag (red), for the paper's "
    "twelve lags; exact expectations, means over matrices with Dirichlet(1) rows, bars one standard deviation over "
    "matrices. Dashes: one over the number of lags. No models are trained."
)


@dataclass(frozen=True)
class Config:
    num_states: int = 10
    matrices: int = 10
    lags: tuple[int, ...] = PAPER_LAGS
    concentration: float = 1.0
    seed: int = 0
    tolerance: float = 1e-10


FIGURES = {NAME: Config(), f"{NAME}_25": Config(num_states=25)}


@dataclass(frozen=True)
class Bars(Saved):
    """`mean[true lag][lag]` over the matrices, and their standard deviation (0 for one matrix); `margins[matrix]` is
    the gap of Claim 1 for every true lag, right to within `error`."""

    num_states: int
    matrices: int
    lags: tuple[int, ...]
    mean: list[list[float]]
    spread: list[list[float]]
    margins: list[list[float]]
    error: float


def config() -> Config:
    return Config()


def compute(config: Config) -> Bars:
    P = random_matrices(config.num_states, config.matrices, seed=config.seed, concentration=config.concentration)
    return of_table(claim_table(P, config.lags, tolerance=config.tolerance), config.num_states)


def of_table(table: ClaimTable, num_states: int) -> Bars:
    """The bars of expectations already at hand."""
    values = table.expectations.reshape(-1, len(table.lags), len(table.lags))
    spread = values.std(dim=0, correction=min(1, len(values) - 1))
    margins = table.margins.reshape(-1, len(table.lags)).tolist()
    return Bars(num_states, len(values), table.lags, values.mean(dim=0).tolist(), spread.tolist(), margins, table.error)


def draw(data: Bars) -> Figure:
    """A panel for each true lag; its own bar is the highest where the claim holds."""
    count = len(data.lags)
    columns = min(count, 4 if count > 4 else count)
    rows = math.ceil(count / columns)
    places = range(count)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for j, ax in enumerate(panels.flat):
            if j >= count:
                ax.set_visible(False)
                continue
            colours = [style.RED if i == j else style.SKY for i in places]
            bars = {"elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            ax.bar(places, data.mean[j], yerr=data.spread[j], color=colours, width=0.8, error_kw=bars)
            ax.axhline(1 / count, color=style.BLACK, lw=0.5, ls=(0, (3, 2)))
            ax.set_title(f"true lag {data.lags[j]}")
            ax.set_xticks(places, [str(lag) for lag in data.lags], fontsize=5 if count > 8 else 7)
            if j >= count - columns:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("lag $r$")
        for ax in panels[:, 0]:
            ax.set_ylabel("$E_r$")
    return figure
