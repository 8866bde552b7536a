"""Statements on training with relative positions."""

from __future__ import annotations

from sih.beyond.relative_positions import positions
from sih.beyond.relative_positions.positions import Positions
from sih.results.judging import BEYOND, Measured, ShareRule, Statement, share


def _relative(data: Positions) -> list[Measured]:
    """Return 1 for each model with relative positions that has found the circuit,
    otherwise 0.
    """
    return [
        Measured(float(one.circuit), label=f"length {one.length}, seed {one.seed}", model=one.name)
        for one in data.models
        if one.relative
    ]


FOUND = Statement(
    "relative-found", BEYOND,
    "With relative positions, training as in the paper finds the selective circuit, with one "
    "head in each layer.",
    positions.EXPERIMENT, _relative, ShareRule(), "of the runs",
    "share of runs whose predictions come 0.9 of the way from equal weights for all candidates to "
    "ML "
    "in every window from 17 tokens on, whose head 3.1 selects the token to copy, whose head 2.1 "
    "is within 0.25 of uniform attention, and whose head 1.1 follows the probabilities of the "
    "parents, or their inverse (a correlation of 0.3)",
    "Success is not certain: runs that copy at fixed offsets fail.",
    combine=share,
)  # fmt: skip

STATEMENTS = (FOUND,)
