"""`sih claim rates` and `sih claim beta`: what follows from Claim 1 for picking the lag and for predicting."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from sih.experiments import beta as beta_experiment
from sih.experiments import wrong_lag as rates_experiment
from sih.figures import style
from sih.files import write_json


class _Data(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def rates(
    out: Path = Path("out/claim"),
    states: int = 5,
    lags: tuple[int, ...] = (1, 2, 3),
    length: int = 99,
    blocks: int = 20,
    sequences: int = 20_000,
    seed: int = 0,
) -> None:
    """Measure how often ML, the estimator and one head of it pick the wrong lag; compare with exact exponents.

    Example: sih claim rates --states 5 --lags 1 2 3 --length 99 --out out/claim

    Args:
        out: the folder to write to.
        states: number of states of the random matrix; states ** max_lag windows must be at most 65536.
        lags: the lag set, increasing.
        length: tokens in a sequence.
        blocks: independent blocks of sequences, for the error bars.
        sequences: sequences a block.
        seed: of the matrix and the sequences.
    """
    if blocks < 2 or sequences < 1:
        raise ValueError(f"error bars need at least 2 blocks of at least 1 sequence; got {blocks} and {sequences}")
    data = rates_experiment.compute(rates_experiment.Config(states, lags, length, blocks, sequences, seed))
    title = "Exponent of the rate of wrong lags, in nats a transition"
    _show(out / rates_experiment.NAME, data, rates_experiment.draw(data), rates_experiment.table(data), title)


def beta(
    out: Path = Path("out/claim"),
    states: int = 5,
    lags: tuple[int, ...] = (1, 2, 3),
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128),
    matrices: int = 8,
    sequences: int = 3000,
    seed: int = 0,
) -> None:
    """Measure the estimator's KL to the truth against beta, with mean and sum evidence, beside BMA and ML.

    Example: sih claim beta --states 5 --lags 1 2 3 --lengths 8 16 32 64 128 --out out/claim

    Args:
        out: the folder to write to.
        states: number of states of the random matrices.
        lags: the lag set, increasing.
        lengths: lengths of context at which the KL is taken.
        matrices: random matrices, for the error bars.
        sequences: sequences a matrix.
        seed: of the matrices and the sequences.
    """
    if matrices < 2 or sequences < 1:
        raise ValueError(f"error bars need at least 2 matrices and 1 sequence of each; got {matrices} and {sequences}")
    if not lengths or min(lengths) <= max(lags, default=0):
        raise ValueError(f"lengths must be above the largest lag, {max(lags, default=0)}; got {lengths}")
    config = beta_experiment.Config(states, lags, lengths, matrices=matrices, sequences=sequences, seed=seed)
    data = beta_experiment.compute(config)
    title = "KL to the true law after T tokens, in nats"
    _show(out / beta_experiment.NAME, data, beta_experiment.draw(data), beta_experiment.table(data), title)


def _show(stem: Path, data: _Data, figure: Figure, rows: list[list[str]], title: str) -> None:
    console = Console(soft_wrap=True, highlight=False)
    shown = Table(*rows[0], title=title)
    for row in rows[1:]:
        shown.add_row(*row)
    console.print(shown)
    write_json(stem.with_suffix(".json"), data.to_dict(), indent=1)
    for path in (stem.with_suffix(".json"), *style.save(figure, stem)):
        console.print(f"wrote {path}")
