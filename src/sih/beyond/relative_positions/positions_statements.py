"""Statements on training with relative positions."""

from __future__ import annotations

from sih.beyond.relative_positions import positions
from sih.beyond.relative_positions.positions import Positions
from sih.results.judging import BEYOND, Measured, ShareRule, Statement, share


def _relative(data: Positions) -> list[Measured]:
    """Return 1 for each measured run that has found the circuit, otherwise 0."""
    return [
        Measured(
            float(one.circuit),
            label=f"length {one.length}, {one.law} matrix {one.matrix}, seed {one.seed}",
        )
        for one in data.runs
    ]


FOUND = Statement(
    "relative-found", BEYOND,
    "With relative positions, training as in the paper finds the selective circuit, with one "
    "head in each layer.",
    positions.EXPERIMENT, _relative, ShareRule(), "of the runs",
    "share of all measured runs on lags {1,2,3} with batches of 256 whose predictions come 0.9 of "
    "the way from weighing the candidates alike to ML in every window from 17 tokens on, whose head "
    "3.1 has 0.8 of the posterior's weight on the true lag, and whose head 1.1 follows the "
    "probabilities of the parents, or their inverse (a correlation of 0.3)",
    "Success is not certain: runs that copy at fixed offsets fail.",
    combine=share,
)  # fmt: skip

STATEMENTS = (FOUND,)
