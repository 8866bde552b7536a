"""The third-layer heads of the form "slots": in each, every key stands for one
hypothesis in all rows.

`parents_circuit.py` proves their sum.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor


class Copying(NamedTuple):
    """The key to which a third-layer head gives each hypothesis's weight, and the
    factor of its output.
    """

    times: float
    keys: Int[Tensor, "row hypothesis"]


def slots(
    following: Int[Tensor, "row hypothesis"], rows: Bool[Tensor, " row"]
) -> tuple[Copying, ...]:
    """Return the heads of the form "slots", with the second bank if a row needs it."""
    count = following.shape[1]
    own_slots = torch.arange(count).expand_as(following)
    taken = (following < count) & (following != own_slots)  # another hypothesis's slot
    second = bool(taken[rows].any())
    own, heads = torch.eye(count, dtype=torch.bool), []
    for a in range(count):
        heads.append(Copying(1.0, torch.where(own[a] & ~taken, following, own_slots)))
    for a in range(count if second else 0):
        heads.append(
            Copying(
                1.0,
                torch.where(own[a], torch.where(taken, following, own_slots), own_slots + count),
            )
        )
    heads.append(Copying(-float(count if second else count - 1), own_slots))
    if second:
        heads.append(Copying(-float(count - 1), own_slots + count))
    return tuple(head for head in heads if head.times)
