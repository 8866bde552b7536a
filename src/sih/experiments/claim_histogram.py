r"""The gap of Claim 1 over random matrices, exactly: the paper's Fig. 3 (left), $E_k - \max_{r \ne k} E_r$."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure

from sih.artifacts.record_json import Saved
from sih.figures import style
from sih.theory.claim import ClaimTable, claim_table
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

NAME = "claim_histogram"
CAPTION = (
    "Gap of Claim 1, the expected normalised probability of the true lag minus the largest of the others, for every "
    "matrix (10 states, Dirichlet(1) rows) and every true lag of the paper's twelve. The expectations are exact (to "
    "1e-10), not sampled: there are no error bars. No models are trained."
)


@dataclass(frozen=True)
class Config:
    num_states: int = 10
    matrices: int = 1000
    lags: tuple[int, ...] = PAPER_LAGS
    concentration: float = 1.0
    seed: int = 0
    tolerance: float = 1e-10


@dataclass(frozen=True)
class Margins(Saved):
    """`margins[matrix][true lag]`, right to within `error`."""

    num_states: int
    lags: tuple[int, ...]
    margins: list[list[float]]
    error: float


def config() -> Config:
    return Config()


def compute(config: Config) -> Margins:
    P = random_matrices(config.num_states, config.matrices, seed=config.seed, concentration=config.concentration)
    return of_table(claim_table(P, config.lags, tolerance=config.tolerance), config.num_states)


def of_table(table: ClaimTable, num_states: int) -> Margins:
    """The margins of expectations already at hand."""
    margins = table.margins.reshape(-1, len(table.lags))
    return Margins(num_states, table.lags, margins.tolist(), table.error)


def draw(data: Margins) -> Figure:
    margins = torch.tensor(data.margins)
    least = margins.min().item()
    with style.paper_style():
        figure = Figure(figsize=(0.62 * style.PAGE, 2.4))
        ax = figure.subplots()
        ax.hist(margins.flatten().numpy(), bins=60, color=style.BLUE, lw=0)
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.axvline(least, color=style.RED, lw=0.9, ls=(0, (3, 2)), label=f"smallest: {least:.4f}")
        ax.set_xlim(left=min(0.0, 1.1 * least))
        ax.margins(x=0.02)
        ax.set_xlabel(r"$E_k - \max_{r\neq k} E_r$")
        ax.set_ylabel("matrices × true lags")
        many = "1 matrix" if len(margins) == 1 else f"{len(margins)} matrices"
        ax.set_title(f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}")
        ax.legend(loc="upper right")
    return figure
