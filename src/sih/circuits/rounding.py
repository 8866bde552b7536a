"""The effect of rounding on attention: a margin above measurements, not a theorem."""

from __future__ import annotations

import math

import torch

from sih.circuits.any_circuit import AnyCircuit, Bounds

UNITS = 16.0
"""Error of a score, in units in the last place of the largest score."""
LIMIT = {torch.float64: 1e8, torch.float32: 1e4}
"""Finite replacement for an infinite beta: differences of evidence above 40 / LIMIT
decide."""


def finite(beta: float, dtype: torch.dtype) -> float:
    """Return beta; for infinity, return the largest value that the number format
    allows.
    """
    return LIMIT[dtype] if math.isinf(beta) else beta


def rounding_bounds(circuit: AnyCircuit, dtype: torch.dtype) -> Bounds:
    """Return the bounds of an exact circuit: rounding alone.

    A score is off by `UNITS` units of the largest one, plus the digits that the first
    layer's probabilities lose beside a mask added to allowed scores. If heads of the
    last layer are summed, so are their errors.
    """
    unit = torch.finfo(dtype).eps / 2
    strength = circuit.strength()
    lost = circuit.masks.allow * strength
    score = unit * (UNITS * (circuit.lam + strength) + lost)
    last = circuit.times * (weight_error(score) + 64 * unit)
    return Bounds(early_rounding(circuit.masks.allow, dtype), last, posterior=None)


def early_rounding(largest: float, dtype: torch.dtype) -> float:
    """Return a bound on the change of attention by rounding, before the last layer.

    Args:
        largest: the largest number added to all scores: the masks'.
    """
    unit = torch.finfo(dtype).eps / 2
    return math.tanh(unit * largest) + 64 * unit


def weight_error(log_odds_error: float) -> float:
    r"""Return the error of a weight if log-odds err by $\delta$: $\tanh(\delta / 4)$."""
    return math.tanh(log_odds_error / 4)
