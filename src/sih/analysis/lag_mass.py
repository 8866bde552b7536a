"""Measures how far back the heads of a model look: their attention by offset, and by offset modulo a period.

The construction's second-layer head h attends to the offsets i - i' = h modulo K, all of them alike (paper, Sec. 5.2).
A trained head that does has its mass on one residue *and* far from the query; one that only copies a neighbour has it
on one offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LagMass:
    """Holds one head's attention by offset, averaged over sequences and over the queries of the second half."""

    head: str
    """Its layer and its number in it, from 1: "2.3"."""
    residues: Float[Tensor, " period"]
    """By (query - key) modulo the period."""
    offsets: Float[Tensor, " near"]
    """At each of the first offsets."""
    far: float
    """At a quarter of the length or more."""

    def __str__(self) -> str:
        shares = [" ".join(f"{value:.2f}" for value in row.tolist()) for row in (self.residues, self.offsets)]
        return (
            f"head {self.head}  by residue {shares[0]}  by offset 0, 1, ... {shares[1]}  past a quarter {self.far:.2f}"
        )


def mass_by_offset(attention: Float[Tensor, "batch query key"], period: int, head: str = "", near: int = 8) -> LagMass:
    """Average one head's attention by offset.

    >>> previous = torch.ones(1, 7, 7).tril(-1).triu(-1)
    >>> mass_by_offset(previous, 3).residues.tolist()
    [0.0, 1.0, 0.0]
    """
    time = attention.shape[-1]
    mean = attention[:, time // 2 :].mean(dim=0)
    offset = torch.arange(time // 2, time)[:, None] - torch.arange(time)
    mass = [mean[offset == o].sum().item() / len(mean) for o in range(time)]
    residues = torch.tensor([sum(mass[r::period]) for r in range(period)])
    return LagMass(head, residues, torch.tensor(mass[:near]), sum(mass[time // 4 :]))


def masses_by_offset(attention: Sequence[Float[Tensor, "batch _ query key"]], period: int) -> list[LagMass]:
    """Average the attention of every head of a model, `attention[layer]`, by offset."""
    return [
        mass_by_offset(heads[:, head], period, f"{layer}.{head + 1}")
        for layer, heads in enumerate(attention, 1)
        for head in range(heads.shape[1])
    ]
