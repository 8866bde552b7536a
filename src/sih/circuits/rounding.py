"""How far rounding may move attention: a margin over what is measured, no theorem."""

from __future__ import annotations

import math

import torch

from sih.circuits.any_circuit import AnyCircuit, Bounds

UNITS = 16.0
"""Units in the last place of the largest score by which a score may be off."""
LIMIT = {torch.float64: 1e8, torch.float32: 1e4}
"""What stands for an infinite beta: evidence that differs by 40 / LIMIT decides."""


def finite(beta: float, dtype: torch.dtype) -> float:
    """Return beta, or for infinity the largest that the number format has room for."""
    return LIMIT[dtype] if math.isinf(beta) else beta


def rounding_bounds(circuit: AnyCircuit, dtype: torch.dtype) -> Bounds:
    """Return the bounds of a circuit that approximates nothing: rounding alone.

    A score is off by `UNITS` units of the largest one, and by the digits that the first
    layer's probabilities lose beside a mask that adds to allowed scores. Where heads of
    the last layer are added up, so are their errors.
    """
    unit = torch.finfo(dtype).eps / 2
    strength = circuit.strength()
    lost = circuit.masks.allow * strength
    score = unit * (UNITS * (circuit.lam + strength) + lost)
    last = circuit.times * (weight_error(score) + 64 * unit)
    return Bounds(early_rounding(circuit.masks.allow, dtype), last, posterior=None)


def early_rounding(largest: float, dtype: torch.dtype) -> float:
    """Return the most that rounding moves attention before the last layer.

    Args:
        largest: the largest number that is added to all scores: the masks'.
    """
    unit = torch.finfo(dtype).eps / 2
    return math.tanh(unit * largest) + 64 * unit


def weight_error(log_odds_error: float) -> float:
    r"""Return by how much a weight is off if log-odds are: $\tanh(\delta / 4)$."""
    return math.tanh(log_odds_error / 4)
