"""`verify`: compare every layer of a model with the closed form of its circuit.

The circuit computes bounds and tolerances from its numbers, the task and the number
format. None of them is read from a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sih.base.errors import DTYPES, check_kind, generator
from sih.base.showing import Drawn
from sih.base.types import Seed
from sih.circuits.any_circuit import AnyCircuit, Expected
from sih.circuits.circuit_table import read_circuit
from sih.circuits.mask_strength import leaks
from sih.models.base import Model
from sih.models.sites import Trace
from sih.task import MatrixTask, ParentsTask, Task, sample

VACUOUS = 0.1
"""A tolerance this large verifies nothing about the first two layers: such masks leave
no digits."""
ENTRIES = 2**22
"""Entries of an attention matrix in all sequences that are compared at once."""
BLIND = 0.5
"""A tolerance this large verifies nothing about the last layer: equal attention to two
lags is within 1/2 of any."""


@dataclass(frozen=True)
class Comparison:
    """The largest distance of one value from its closed form, with its place."""

    site: str
    """The value's hook point: "2.1/attention", "2.1/1.1/position", "output"."""
    first: int
    """First position (0-based) at which the closed form holds and was compared."""
    error: float
    sequence: int
    kind: str
    """The kind of sequence that this one is."""
    position: int


@dataclass(frozen=True)
class Verification(Drawn):
    """Result of comparing a model with the closed form of its circuit."""

    drawing = "sih.results.plots.verification:draw_verification"

    comparisons: tuple[Comparison, ...]
    tolerance: float
    """Tolerance for the last layer's attention and the output, from rounding and
    leaking masks. `BLIND` or more verifies nothing."""
    early_tolerance: float
    """Tolerance before the last layer, where no score is multiplied by beta. `VACUOUS`
    or more verifies nothing."""
    first_exact_position: int
    posterior_error: float | None
    """Largest error of a weight against the exact posterior, for the target "bayes";
    `bound` is the certified one. For the target "looking", against the posterior given
    the transitions that it uses."""
    bound: float | None
    sequences: dict[str, int]
    dtype: str

    def _facts(self) -> Mapping[str, Any]:
        facts = {
            "ok": self.ok,
            "max_error": self.max_error,
            "at": self.worst.site,
            "tolerance": self.tolerance,
        }
        posterior = {
            "posterior_error": self.posterior_error,
            "bound": self.bound,
            "reason": self.reason,
        }
        found = {name: value for name, value in posterior.items() if value is not None}
        return {**facts, **found, "sequences": sum(self.sequences.values()), "dtype": self.dtype}

    @property
    def worst(self) -> Comparison:
        """Return the comparison with the largest error."""
        return max(self.comparisons, key=lambda found: found.error)

    @property
    def max_error(self) -> float:
        """Return the largest error of all comparisons."""
        return self.worst.error

    @property
    def vacuous(self) -> bool:
        """Return whether a tolerance is too wide to verify anything, for lack of
        digits.
        """
        return self.tolerance >= BLIND or self.early_tolerance >= VACUOUS

    @property
    def reason(self) -> str | None:
        """Return the reason why nothing can be verified, or None."""
        digits = f"{self.dtype} has too few digits for scores so large"
        why = f"{digits}: a tolerance so wide verifies nothing; use a smaller beta, lam or temper, or float64"
        return why if self.vacuous else None

    @property
    def ok(self) -> bool:
        """Return whether all errors are within the tolerances, and the posterior within
        its bound.
        """
        within = (
            self.posterior_error is None or self.bound is None or self.posterior_error <= self.bound
        )
        near = all(found.error <= self.tolerance_of(found) for found in self.comparisons)
        return near and self.max_error <= self.tolerance and within and not self.vacuous

    def tolerance_of(self, found: Comparison) -> float:
        """Return the tolerance for this value: smaller before the last layer."""
        last = max(_layer(each.site) for each in self.comparisons if each.site != "output")
        is_early = found.site != "output" and _layer(found.site) < last
        return self.early_tolerance if is_early else self.tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON."""
        return {**asdict(self), "max_error": self.max_error, "ok": self.ok}


def verify(
    model: Model, task: Task | ParentsTask | None = None, *, size: int = 16, rng: Seed | None = None
) -> Verification:
    """Return how far a constructed model is from the closed form of its circuit.

    Attention, stream and prediction are compared, on sequences of the task and on
    adversarial ones (constant, cycling, least likely steps, coin tosses).

    Args:
        model: A model from `sih.construct` or `sih.construct_parents`, or a loaded one.
        task: The task. Default: the one in the model's notes.
        size: Number of sequences of the task.
        rng: A generator or a seed. Default: 0.

    Returns:
        The largest error of each value, with the tolerances and the certified bound.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=32)
    >>> found = sih.verify(sih.construct(task))
    >>> found.ok, found.max_error < 1e-9
    (True, True)
    """
    circuit, task = circuit_and_task(model, task)
    _check_fit(model, task, circuit)
    rng = generator(0 if rng is None else rng)
    named = {"of the task": sample(task, size, rng=rng).tokens, **adversarial(task, rng)}
    kinds = [kind for kind, rows in named.items() for _ in rows]
    tokens = torch.cat(list(named.values()))
    comparisons: dict[str, Comparison] = {}
    exact: list[float] = []
    size_of_part = max(1, ENTRIES // tokens.shape[1] ** 2)
    for start in range(0, len(tokens), size_of_part):
        part = tokens[start : start + size_of_part]
        with torch.no_grad():
            trace = model.trace(part)
        for expected in circuit.expected(part, task):
            if expected.site == "output" and model.config.readout != "probability":
                continue
            found = _compare(trace, expected, kinds, start)
            known = comparisons.setdefault(found.site, found)
            if found.error > known.error:
                comparisons[found.site] = found
        exact += [
            _compare(trace, expected, kinds, start).error for expected in circuit.exact(part, task)
        ]
    bounds = circuit.bounds(task, DTYPES[model.config.dtype])
    early_leak, leak = (0.0, 0.0) if circuit.bounds_hold_leaks else leaks(circuit, task)
    return Verification(
        comparisons=tuple(comparisons.values()),
        tolerance=bounds.last + leak,
        early_tolerance=bounds.early + early_leak,
        first_exact_position=circuit.first_exact_position,
        posterior_error=max(exact, default=None),
        bound=bounds.posterior,
        sequences={kind: len(rows) for kind, rows in named.items()},
        dtype=model.config.dtype,
    )


def circuit_and_task(
    model: Model, task: Task | ParentsTask | None = None
) -> tuple[AnyCircuit, Any]:
    """Return the circuit in a model's notes, with the given task or else the one in the
    notes.
    """
    check_kind("model", model, Model, "a model with a circuit, e.g. sih.construct(task)")
    if model.circuit is None and "circuit" not in model.notes:
        raise ValueError(
            "verify compares weights that sih.construct wrote with the closed form of their "
            "circuit, and this model has no circuit; for a trained model use sih.diagnose"
        )
    try:
        circuit: AnyCircuit = model.circuit or read_circuit(
            model.notes["circuit"], model.Shape.kind
        )
        kind = circuit.task_kind
        task = kind(**model.notes["task"]) if task is None else task
    except KeyError as missing:
        raise ValueError(
            f"the model does not know its {missing.args[0]}; one made by `sih.construct` does"
        ) from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model's notes hold no circuit and task: {error}") from error
    check_kind("task", task, kind, f"a task of the circuit's kind, a {kind.__name__}")
    circuit.check_fit(task)
    if circuit.length is None and isinstance(task, Task) and "task" in model.notes:
        _check_same_chains(task, kind(**model.notes["task"]))
    return circuit, task


def _check_same_chains(task: Task, own: Task) -> None:
    """Raise a ValueError unless the weights were written for this task, at any length."""
    if task.same_chains(own):
        return
    same_P = task.P.shape == own.P.shape and torch.allclose(task.P, own.P, rtol=0, atol=1e-9)
    what = "another prior of lags" if same_P else "another matrix P"
    what = what if task.lags == own.lags else "other lags"
    raise ValueError(
        f"the weights were written for {what} than the task's; verify(model) takes the model's own "
        "task, and verify(model, task.with_length(300)) the same at another length"
    )


def adversarial(task: MatrixTask, rng: torch.Generator) -> dict[str, Int[Tensor, "batch time"]]:
    """Return adversarial sequences (constant, cycling, uniform, least likely) of
    positive probability.
    """
    length, states = task.length, task.num_states
    rows: dict[str, Tensor] = {}
    if (task.P > 0).all():
        rows["constant"] = torch.arange(states)[:, None].expand(-1, length)
        rows["cycling"] = torch.stack(
            [torch.arange(length) % period for period in range(2, states + 1)]
        )
        rows["coin tosses"] = torch.randint(states, (4, length), generator=rng)
    unlikely = torch.where(task.P > 0, task.P, torch.inf).argmin(dim=-1).tolist()
    least = []
    for parents in task.parents(length).tolist():
        drawn = iter(torch.randint(states, (parents.count(-1),), generator=rng).tolist())
        row: list[int] = []
        for parent in parents:
            row.append(next(drawn) if parent < 0 else unlikely[row[parent]])
        least.append(row)
    rows["least likely"] = torch.tensor(least)
    return rows


def _compare(trace: Trace, expected: Expected, kinds: Sequence[str], before: int) -> Comparison:
    """Return how far a value is from its closed form, after `before` earlier sequences."""
    found = trace[expected.site]
    at = expected.rows.nonzero().flatten()
    started = found.shape[1] - trace.tokens.shape[1]  # rows of a start token, the first
    gap = torch.nan_to_num((found.double() - expected.value).abs(), nan=torch.inf)[:, at].amax(
        dim=-1
    )
    row, position = divmod(int(gap.argmax()), gap.shape[1])
    return Comparison(
        expected.site,
        int(at[0]) - started,
        gap.max().item(),
        before + row,
        kinds[before + row],
        int(at[position]) - started,
    )


def _check_fit(model: Model, task: MatrixTask, circuit: AnyCircuit) -> None:
    config = model.config
    found = (config.num_states, config.length, config.heads)
    wanted = (task.num_states, circuit.length, circuit.model_heads)
    if found != wanted:
        raise ValueError(
            f"model, task, circuit do not fit: the model has {found[0]} states, length {found[1]}, "
            f"heads {found[2]}; by task and circuit they are {wanted[0]}, {wanted[1]}, {wanted[2]}"
        )
    circuit.check_model(model, task)


def _layer(site: str) -> int:
    """Return the layer of a value of a head."""
    return int(site.partition(".")[0])
