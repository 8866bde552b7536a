"""`sih claim rates` and `sih claim beta`: measure the consequences of Claim 1 for
picking the lag and for predicting.
"""

from pathlib import Path
from typing import Any, TypeVar

from sih.base.files import write_json
from sih.claim.beta import EXPERIMENT as BETA
from sih.claim.beta import BetaConfig
from sih.claim.wrong_lag import EXPERIMENT as WRONG_LAG
from sih.claim.wrong_lag import WrongLagConfig
from sih.cli.printing import plain_console, table_of
from sih.results import style
from sih.results.data import as_lists
from sih.results.experiment import Experiment
from sih.results.figure import shown
from sih.training.runs.run_store import RunStore

C = TypeVar("C")


def rates(
    out: Path = Path("out/claim"),
    states: int = 5,
    lags: tuple[int, ...] = (1, 2, 3),
    length: int = 99,
    blocks: int = 20,
    sequences: int = 20_000,
    seed: int = 0,
) -> None:
    """Measure how often ML, the estimator and one head of it pick the wrong lag;
    compare with exact exponents.

    Example: sih claim rates --states 5 --lags 1 2 3 --length 99 --out out/claim

    Args:
        out: The folder to write to.
        states: Number of states of the random matrix; states ** max_lag windows must be
            at most 65536.
        lags: The lag set, increasing.
        length: Tokens in a sequence.
        blocks: Independent blocks of sequences, for the error bars.
        sequences: Sequences per block.
        seed: Random seed for the matrix and the sequences.
    """
    if blocks < 2 or sequences < 1:
        raise ValueError(
            f"error bars need at least 2 blocks of at least 1 sequence; got {blocks} and {sequences}"
        )
    config = WrongLagConfig(states, lags, length, blocks, sequences, seed=seed)
    _show(WRONG_LAG, config, out, "Exponent of the rate of wrong lags, in nats a transition")


def beta(
    out: Path = Path("out/claim"),
    states: int = 5,
    lags: tuple[int, ...] = (1, 2, 3),
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128),
    matrices: int = 8,
    sequences: int = 3000,
    seed: int = 0,
) -> None:
    """Measure the estimator's KL to the truth against beta, with mean and sum evidence,
    beside BMA and ML.

    Example: sih claim beta --states 5 --lags 1 2 3 --lengths 8 16 32 64 128 --out out/claim

    Args:
        out: The folder to write to.
        states: Number of states of the random matrices.
        lags: The lag set, increasing.
        lengths: Lengths of context at which the KL is taken.
        matrices: Random matrices, for the error bars.
        sequences: Sequences per matrix.
        seed: Random seed for the matrices and the sequences.
    """
    if matrices < 2 or sequences < 1:
        raise ValueError(
            f"error bars need at least 2 matrices and 1 sequence of each; got {matrices} and {sequences}"
        )
    if not lengths or min(lengths) <= max(lags, default=0):
        raise ValueError(
            f"lengths must be above the largest lag, {max(lags, default=0)}; got {lengths}"
        )
    config = BetaConfig(
        states,
        lags,
        lengths,
        matrices=matrices,
        sequences=sequences,
        limit_sequences=sequences,
        laws=("dirichlet",),
        seed=seed,
    )
    _show(BETA, config, out, "KL to the true distribution after T tokens, in nats")


def _show(experiment: Experiment[C, Any], config: C, out: Path, title: str) -> None:
    console, stem, figure = plain_console(), out / experiment.name, shown(experiment)
    data = experiment.compute(config, RunStore())
    console.print(table_of(figure.table(data), title))
    write_json(stem.with_suffix(".json"), as_lists(data), indent=1)
    for path in (stem.with_suffix(".json"), *style.save(figure.draw(data), stem)):
        console.print(f"wrote {path}")
