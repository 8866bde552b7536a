"""What may be asked of a circuit for a table of parents, and how it is resolved into a `ParentsCircuit`."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from sih.checks import FieldError, check_kind, described, dtype_name
from sih.construction.bayes import LOG_ZERO, best_tempering
from sih.construction.circuit import Evidence
from sih.construction.heads.apart import pair_heads, token_heads
from sih.construction.parents_circuit import ParentsCircuit, check_table, shared_parent
from sih.construction.specs import (
    CIRCUITS,
    check_numbers,
    check_word,
    finite,
    mask_strength,
    named_spec,
)
from sih.task import ParentsTask

Third = Literal["parents", "slots"]


@dataclass(frozen=True)
class PaperParents:
    """Asks for the paper's circuit, the selective estimator, for a table of parents."""

    third: Third | None = None
    """Whether one third-layer head looks at the parents ("parents", the paper's form), or several at slots ("slots",
    always possible). None: the one with fewer weights in all."""
    evidence: Evidence = "mean"
    """Whether a hypothesis's normalised probabilities are averaged (the paper's) or added up."""
    lam: float | None = None
    """The masks' strength. None: 500, or as much as the scores need."""
    beta: float = 100.0
    """Inverse temperature of the third layer; math.inf for the limit."""
    temper: float = 1.0
    """Exponent on the probabilities in the first layer, 1 in the paper."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, beta=self.beta, temper=self.temper)
        _check_third(self.third)
        check_word("evidence", self.evidence, ("mean", "sum"))

    def resolve(self, task: ParentsTask, dtype: torch.dtype) -> ParentsCircuit:
        circuit = _fewest("paper", task, self.third, self.evidence)
        circuit = replace(circuit, beta=finite(self.beta, dtype), temper=self.temper)
        return replace(circuit, lam=mask_strength(circuit, task, self.lam))


@dataclass(frozen=True)
class BayesParents:
    """Asks for the Bayesian model average over a table of parents, up to the bound that `sih.verify` states."""

    third: Third | None = None
    """As for the target "paper"."""
    lam: float | None = None
    """The masks' strength. None: as much as the scores need, 500 at least."""
    temper: float | None = None
    """Exponent on the probabilities in the first layer. None: the one with the least certified error."""
    symmetric: bool = True
    """Two first-layer heads of opposite exponent, which cost a head and win two to four digits."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, temper=self.temper)
        check_kind("symmetric", self.symmetric, bool, "True or False")
        _check_third(self.third)

    def resolve(self, task: ParentsTask, dtype: torch.dtype) -> ParentsCircuit:
        dtype_name(dtype)
        circuit = replace(
            _fewest("bayes", task, self.third, "sum"), prior=True, symmetric=self.symmetric
        )
        temper = self.temper or best_tempering(task, circuit.size, dtype, self.symmetric).temper
        circuit = replace(
            circuit, temper=temper, beta=len(task.hypotheses) / temper, log_zero=LOG_ZERO[dtype]
        )
        return replace(circuit, lam=mask_strength(circuit, task, self.lam))


PARENTS_CIRCUITS: dict[str, type[PaperParents] | type[BayesParents]] = {
    "paper": PaperParents,
    "bayes": BayesParents,
}


def parents_spec(target: str, **options: Any) -> PaperParents | BayesParents:
    """Return the spec of this kind of circuit; an option that is None is left to the circuit.

    >>> parents_spec("paper", beta=3.0, third=None)
    PaperParents(third=None, evidence='mean', lam=None, beta=3.0, temper=1.0)
    """
    if isinstance(target, str) and target in CIRCUITS.keys() - PARENTS_CIRCUITS.keys():
        raise FieldError(
            "target",
            f"the target {target!r} is for lags; of a table of parents it is 'paper' or 'bayes'",
        )
    return named_spec(PARENTS_CIRCUITS, target, options)


def _fewest(
    target: str, task: ParentsTask, third: Third | None, evidence: Evidence
) -> ParentsCircuit:
    """Return a circuit, without its numbers yet, of the form asked for or of that with fewer weights."""
    check_table(task)
    shared, table = shared_parent(task), tuple(map(tuple, task.table.tolist()))
    found = []
    if third == "parents" and shared is not None:
        row, h, g = shared
        why = f"hypotheses {h} and {g} differ before and give token {row + 1} one parent, whose weight is no one score"
        raise FieldError("third", f"the form 'parents' cannot serve this table: {why}; use 'slots'")
    if third != "slots" and shared is None:
        found.append(
            ParentsCircuit(
                target, "parents", table, task.length, pair_heads(task.table), evidence, beta=1.0
            )
        )
    if third != "parents":
        heads = (token_heads(task.table[:, :-1]).colours,)
        slots = ParentsCircuit(target, "slots", table, task.length, heads, evidence, beta=1.0)
        if slots.rows.any():
            found.append(slots)
    if not found:
        rows = f"is right from position {2 * len(task.hypotheses) - 1} on, and no token after that has parents"
        raise FieldError(
            "length", f"length {task.length} is too short: with these parents the circuit {rows}"
        )
    return min(found, key=lambda circuit: (1 + circuit.heads) ** 2 * len(circuit.copying))


def _check_third(third: str | None) -> None:
    if third is not None and not (isinstance(third, str) and third in ("parents", "slots")):
        raise FieldError(
            "third", f"of a table of parents, third is 'parents' or 'slots'; got {described(third)}"
        )
