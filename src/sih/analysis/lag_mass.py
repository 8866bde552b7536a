"""Where the heads of a trained model look: the tiling of the second layer, read off its attention.

The construction's second-layer head h attends to the offsets i - i' = h modulo K, all of them alike (paper, Sec. 5.2).
A trained head that does has its mass on one residue *and* far from the query; one that only copies a neighbour has it
on one offset.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.runs.run import Run
from sih.task import sample


@dataclass(frozen=True, eq=False)
class Head:
    """One head's attention, averaged over sequences and over the queries of the second half."""

    name: str
    residues: Float[Tensor, " period"]
    offsets: Float[Tensor, " near"]
    far: float

    def __str__(self) -> str:
        shares = [" ".join(f"{value:.2f}" for value in row.tolist()) for row in (self.residues, self.offsets)]
        return (
            f"head {self.name}  by residue {shares[0]}  by offset 0, 1, ... {shares[1]}  past a quarter {self.far:.2f}"
        )


def attention_by_offset(
    attention: Float[Tensor, "batch query key"], period: int, near: int = 8
) -> tuple[Float[Tensor, " period"], Float[Tensor, " near"], float]:
    """Mass by (query - key) modulo `period`, at each offset below `near`, and at a quarter of the length or more.

    >>> previous = torch.ones(1, 7, 7).tril(-1).triu(-1)
    >>> attention_by_offset(previous, 3, near=2)[0].tolist()
    [0.0, 1.0, 0.0]
    """
    time = attention.shape[-1]
    mean = attention[:, time // 2 :].mean(dim=0)
    offset = torch.arange(time // 2, time)[:, None] - torch.arange(time)
    mass = [mean[offset == o].sum().item() / len(mean) for o in range(time)]
    residues = torch.tensor([sum(mass[r::period]) for r in range(period)])
    return residues, torch.tensor(mass[:near]), sum(mass[time // 4 :])


def heads_of(run: Run, period: int | None = None, sequences: int = 32, seed: int = 0) -> list[Head]:
    """Every head of a run's model on fresh sequences of its task; residues modulo max_lag - min_lag + 1 unless said."""
    tokens = sample(run.task, sequences, rng=torch.Generator().manual_seed(seed)).tokens
    period = period or run.task.max_lag - run.task.min_lag + 1
    with torch.no_grad():
        trace = run.model.trace(tokens)
        return [
            Head(f"{layer}.{head + 1}", *attention_by_offset(attention[:, head], period))
            for layer, attention in enumerate(trace.attention, 1)
            for head in range(attention.shape[1])
        ]


def probabilities_in_layer_1(run: Run, sequences: int = 32, seed: int = 0) -> float:
    r"""Correlation of the first head's attention at offsets $k \in \mathcal K$ with $\tilde p_{i,k}$.

    The construction's first layer has 1; a head that ignores the tokens has 0 or less.
    """
    task = run.task
    tokens = sample(task, sequences, rng=torch.Generator().manual_seed(seed)).tokens
    with torch.no_grad():
        attention = run.model.trace(tokens).attention[0][:, 0]
    later = torch.arange(task.max_lag, task.length)
    p = torch.stack([task.P[tokens[:, later - lag], tokens[:, later]] for lag in task.lags], dim=-1)
    found = torch.stack([attention[:, later, later - lag] for lag in task.lags], dim=-1)
    pair = torch.stack([found.flatten().to(p.dtype), (p / p.sum(dim=-1, keepdim=True)).flatten()])
    return torch.corrcoef(pair)[0, 1].item()
