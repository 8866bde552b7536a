"""The circuits for any parents: the selective estimator and the Bayesian average."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.beyond.any_parents.parents_circuit import ParentsCircuit, ParentsThird
from sih.beyond.any_parents.parents_layers import write_parents
from sih.beyond.any_parents.tables import check_table, shared_parent
from sih.beyond.any_parents.token_heads import pair_heads, token_heads
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.mask_strength import masked
from sih.circuits.offset_heads import Evidence
from sih.circuits.rounding import finite, rounding_bounds
from sih.circuits.strengths import OrInfinite, Strength
from sih.circuits.tempering import LOG_ZERO, best_tempering, tempered_bounds
from sih.predictors.evidence import lag_posterior
from sih.task import ParentsTask

ParentsT = TypeVar("ParentsT", bound=ParentsCircuit)


@dataclass(frozen=True)
class PaperParentsOptions(CircuitOptions):
    """Options of the paper's circuit for a table of parents."""

    third: ParentsThird | None = None
    """Form of the third layer: one head that attends to parents (parents, the paper's
    form), or several that attend to slots (slots, always possible). By default the one
    with fewer weights in all."""
    evidence: Evidence = "mean"
    """Whether probabilities p-tilde are averaged (the paper's) or summed."""
    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    beta: OrInfinite = 100.0
    """Inverse temperature of the third layer; inf for the limit."""
    temper: Strength = 1.0
    """Exponent on the probabilities in the first layer."""


@dataclass(frozen=True, kw_only=True)
class PaperParentsCircuit(ParentsCircuit):
    """The selective estimator for a table of parents, with all its numbers."""

    target: ClassVar[str] = "paper"
    Options: ClassVar[type[CircuitOptions]] = PaperParentsOptions

    evidence: Evidence

    @classmethod
    def resolve(
        cls, task: ParentsTask, options: PaperParentsOptions, dtype: torch.dtype
    ) -> PaperParentsCircuit:
        asked = {"beta": finite(options.beta, dtype), "temper": options.temper}
        circuit = fewest(cls, task, options.third, evidence=options.evidence, **asked)
        return masked(circuit, task, options.lam)

    def write(self, blocks: Blocks, task: ParentsTask, readout: str) -> None:
        write_parents(blocks, task, self, readout)

    def bounds(self, task: ParentsTask, dtype: torch.dtype) -> Bounds:
        return rounding_bounds(self, dtype)

    @property
    def counting(self) -> Evidence:
        return self.evidence


@dataclass(frozen=True)
class BayesParentsOptions(CircuitOptions):
    """Options of the Bayes-optimal circuit for a table of parents."""

    third: ParentsThird | None = None
    """Form of the third layer: one head that attends to parents (parents, the paper's
    form), or several that attend to slots (slots, always possible). By default the one
    with fewer weights in all."""
    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    temper: Strength | None = None
    """Exponent on the probabilities in the first layer. By default the exponent with
    the least certified error. It determines the inverse temperature."""
    symmetric: bool = True
    """Whether layer 1 has two heads of opposite exponents. This costs a head and gains
    2 to 4 digits."""


@dataclass(frozen=True, kw_only=True)
class BayesParentsCircuit(ParentsCircuit):
    """The Bayesian model average over a table of parents, with all its numbers."""

    target: ClassVar[str] = "bayes"
    Options: ClassVar[type[CircuitOptions]] = BayesParentsOptions
    with_prior: ClassVar[bool] = True

    @classmethod
    def resolve(
        cls, task: ParentsTask, options: BayesParentsOptions, dtype: torch.dtype
    ) -> BayesParentsCircuit:
        circuit = fewest(cls, task, options.third, beta=1.0, symmetric=options.symmetric)
        best = best_tempering(task, circuit.size, dtype, symmetric=options.symmetric)
        temper = options.temper or best.temper
        beta = len(task.hypotheses) / temper
        circuit = replace(circuit, temper=temper, beta=beta, log_zero=LOG_ZERO[dtype])
        return masked(circuit, task, options.lam)

    def write(self, blocks: Blocks, task: ParentsTask, readout: str) -> None:
        write_parents(blocks, task, self, readout)

    def exact(self, tokens: Int[Tensor, "batch time"], task: ParentsTask) -> Iterator[Expected]:
        return self.copies(lag_posterior(tokens, task))

    def bounds(self, task: ParentsTask, dtype: torch.dtype) -> Bounds:
        return tempered_bounds(self, task, self.size, dtype, mixing=0.0)

    @property
    def counting(self) -> Evidence:
        return "sum"


def fewest(
    kind: type[ParentsT], task: ParentsTask, third: ParentsThird | None, **asked: Any
) -> ParentsT:
    """Return a circuit of the requested form, or of the form with fewer weights."""
    check_table(task)
    shared = shared_parent(task)
    asked = {**asked, "parents": tuple(map(tuple, task.table.tolist())), "length": task.length}
    found = []
    if third == "parents" and shared is not None:
        row, h, g = shared
        raise FieldError(
            "third",
            f"the form 'parents' cannot serve this table: hypotheses {h} and {g} differ before and "
            f"give token {row + 1} one parent, whose weight is no one score; use 'slots'",
        )
    if third != "slots" and shared is None:
        heads = pair_heads(task.table)
        found.append(kind(third="parents", head_of_token=heads, **asked))
    if third != "parents":
        of_tokens = token_heads(task.table[:, :-1]).colours
        slots = kind(third="slots", head_of_token=(of_tokens,), **asked)
        if slots.rows.any():
            found.append(slots)
    if not found:
        raise FieldError(
            "length",
            f"length {task.length} is too short: with these parents the circuit is right from "
            f"position {2 * len(task.hypotheses) - 1} on, and no token after that has parents",
        )
    return min(found, key=lambda circuit: (1 + circuit.heads) ** 2 * len(circuit.copying))
