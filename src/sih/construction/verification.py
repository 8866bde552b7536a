"""Is the circuit in the weights? `verify` runs them and compares every layer with the closed form.

Bounds and tolerances are computed here, from the circuit's choices, the task and the number format: nothing of the kind
is read from a file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.checks import DTYPES, Seed, check_kind, dtype_name, generator
from sih.construction.bayes import ROUNDING, Tempering, certified, certified_bound, weight_error
from sih.construction.build import construct
from sih.construction.circuit import Circuit
from sih.construction.expected import Expected, lag_form, parents_form
from sih.construction.layers import mask_levels
from sih.construction.looking import looking_error
from sih.construction.narrow import early_size
from sih.construction.parents_circuit import ParentsCircuit, read_circuit
from sih.construction.specs import log_leaks, option_names
from sih.models.base import Model
from sih.models.standard.transformer import Transformer
from sih.showing import Drawn, html_table
from sih.task import ParentsTask, Task, sample

VACUOUS = 0.1
"""A tolerance so large says nothing of the first two layers: masks of such a strength leave no digits."""
BLIND = 0.5
"""Nor does one so large of the last: attention to two lags alike, whatever the evidence, is within 1/2 of any."""


@dataclass(frozen=True)
class Comparison:
    """Says how far one value of the pass is from its closed form, and where it is furthest."""

    site: str
    """The value's name in a trace: "2.1/attention", "2.1/1.1/position", "output"."""
    first: int
    """Positions from here on (0-based) are claimed and were compared."""
    error: float
    sequence: int
    kind: str
    """Which kind of sequence that one is."""
    position: int


@dataclass(frozen=True)
class Verification(Drawn):
    """Says what was compared, on what, and how far off the worst of it was."""

    comparisons: tuple[Comparison, ...]
    tolerance: float
    """How far rounding, and what the masks let through, may move an attention weight of the last layer, and so the
    output, from the closed form. `BLIND` or more verifies nothing."""
    early_tolerance: float
    """The same before the last layer, where no score is multiplied by beta. `VACUOUS` or more verifies nothing."""
    first_exact_position: int
    posterior_error: float | None
    """Largest difference of a weight from the exact posterior, for the target "bayes"; `bound` is what is certified.
    For the target "looking", from the posterior given the transitions that it uses."""
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

    def _pictures(self) -> Iterator[str]:
        rows = [["value", "compared from", "largest error", "at position", "of a sequence"]]
        for found in self.comparisons:
            rows.append(
                [
                    found.site,
                    str(found.first),
                    f"{found.error:.1e}",
                    str(found.position),
                    found.kind,
                ]
            )
        yield html_table(rows)

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
        """Tell whether a tolerance is so wide that being within it says nothing: too few digits for these scores."""
        return self.tolerance >= BLIND or self.early_tolerance >= VACUOUS

    @property
    def reason(self) -> str | None:
        """Say why nothing can be verified, None where something can."""
        digits = f"{self.dtype} has too few digits for scores so large"
        why = f"{digits}: a tolerance so wide verifies nothing; use a smaller beta, lam or temper, or float64"
        return why if self.vacuous else None

    @property
    def ok(self) -> bool:
        """Tell whether every error is within what rounding and the masks may do, and the posterior within its bound."""
        within = (
            self.posterior_error is None or self.bound is None or self.posterior_error <= self.bound
        )
        early = max(each.error for each in self.comparisons if each.site[0] in "12")
        near = self.max_error <= self.tolerance and early <= self.early_tolerance
        return near and within and not self.vacuous

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "max_error": self.max_error, "ok": self.ok}


def verify(
    model: Model, task: Task | ParentsTask | None = None, *, size: int = 16, rng: Seed | None = None
) -> Verification:
    """Compare attention, stream and prediction of a constructed model with the closed form of its circuit.

    The model runs on sequences of the task and on adversarial ones (constant, cycling, least likely steps, coin
    tosses). The circuit is the one that the model carries.

    Args:
        model: made by `sih.construct`, or loaded.
        task: the one that the model carries unless given.
        size: sequences of the task.
        rng: a generator or a seed, 0 unless given.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=32)
    >>> found = sih.verify(sih.construct(task))
    >>> found.ok, found.max_error < 1e-9
    (True, True)
    """
    circuit, task = carried(model, task)
    _check_fit(model, task, circuit)
    rng = generator(0 if rng is None else rng)
    named = {"of the task": sample(task, size, rng=rng).tokens, **adversarial(task, rng)}
    tokens = torch.cat(list(named.values()))
    kinds = [kind for kind, rows in named.items() for _ in range(len(rows))]
    with torch.no_grad():
        trace = model.trace(tokens)
    dtype, largest, more = DTYPES[model.config.dtype], 0.0, 0.0
    tolerance = rounding(circuit, task, dtype)
    if isinstance(circuit, Circuit):
        narrow = isinstance(model, Transformer)
        largest = early_size(circuit, circuit.length) if narrow else mask_levels(circuit)[0]
        form = lag_form(tokens, task, circuit, stored_at_indices=not narrow)
        if narrow:  # what one transition's evidence may lose beside the mask: more than all may, where they are few
            lost = (
                early_rounding(early_size(circuit, 0), dtype) * len(circuit.lags) / circuit.temper
            )
            more = max(0.0, weight_error(lost) - tolerance)
    else:
        form = parents_form(tokens, task, circuit)
    leak, leaked = leaks(circuit, task)
    expected = [
        *form.before,
        *form.last,
        *([form.output] if model.config.readout == "probability" else []),
    ]
    certificate = _certificate(circuit, task, dtype)
    bound = (
        certificate.bound
        if certificate and circuit.looking
        else certified_bound(circuit, task, dtype)
    )
    exact = [_compare(trace[entry.site], entry, kinds).error for entry in form.exact]
    return Verification(
        comparisons=tuple(_compare(trace[entry.site], entry, kinds) for entry in expected),
        tolerance=tolerance + more + leaked,
        early_tolerance=early_rounding(largest, dtype) + leak,
        first_exact_position=circuit.first_exact_position,
        posterior_error=max(exact, default=None),
        bound=None if bound is None else bound + more,
        sequences={kind: len(rows) for kind, rows in named.items()},
        dtype=model.config.dtype,
    )


def carried(
    model: Model, task: Task | ParentsTask | None = None
) -> tuple[Circuit | ParentsCircuit, Task | ParentsTask]:
    """Return the circuit that a model carries, and the task: the one given or the one that its notes hold."""
    check_kind("model", model, Model, "a model with a circuit, e.g. sih.construct(task)")
    if task is not None:
        check_kind(
            "task",
            task,
            (Task, ParentsTask),
            "a task, e.g. sih.Task(P, lags=(1, 2, 3), length=128)",
        )
    if model.circuit is None and "circuit" not in model.notes:
        raise ValueError(
            "verify compares weights that sih.construct wrote with the closed form of their circuit, and this model "
            "carries no circuit; of a trained model, sih.diagnose says what it has learnt"
        )
    try:
        circuit = read_circuit(model.notes["circuit"]) if model.circuit is None else model.circuit
        if task is None:
            task = (ParentsTask if isinstance(circuit, ParentsCircuit) else Task)(
                **model.notes["task"]
            )
    except KeyError as missing:
        raise ValueError(
            f"the model does not know its {missing.args[0]}; one made by `sih.construct` does"
        ) from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the model's notes hold no circuit and task: {error}") from error
    if isinstance(circuit, Circuit) and isinstance(task, Task):
        ours, theirs = (f"lags {one.lags} and length {one.length}" for one in (circuit, task))
        if ours != theirs:
            raise ValueError(
                f"circuit and task do not fit: the circuit is for {ours}, the task has {theirs}"
            )
    return circuit, task


def rounding(
    circuit: Circuit | ParentsCircuit, task: Task | ParentsTask, dtype: torch.dtype
) -> float:
    """Return how far rounding may move an attention weight from the closed form: a margin, not a theorem.

    It is `ROUNDING` units in the last place of the largest score, and the digits that the first layer's probabilities
    lose beside a mask that adds lam to wanted scores. Where third-layer heads are added up, so are their errors.
    """
    certificate = _certificate(circuit, task, dtype)
    if certificate is not None:
        return certificate.rounding * circuit.times
    unit, strength = torch.finfo(dtype).eps / 2, circuit.strength()
    lost = mask_levels(circuit)[0] * strength
    return circuit.times * (
        math.tanh(unit * (ROUNDING * (circuit.lam + strength) + lost) / 4) + 64 * unit
    )


def early_rounding(largest: float, dtype: torch.dtype) -> float:
    """Return the same for the first two layers, whose scores are as large as the masks where a mask adds to all."""
    unit = torch.finfo(dtype).eps / 2
    return math.tanh(unit * largest) + 64 * unit


def leaks(circuit: Circuit | ParentsCircuit, task: Task | ParentsTask) -> tuple[float, float]:
    """Bound what weak masks change: an attention weight before the last layer, and one of any layer.

    What the first two layers let through moves the last layer's scores by no more than that share of their evidence,
    at the key that is ahead and at the other. What the last layer's masks let through counts where no certificate
    makes them far stronger than the evidence of any sequence is.
    """
    first, last = (
        math.exp(min(log_leak - 2 * circuit.lam, 0.0)) for log_leak in log_leaks(circuit, task)
    )
    own = last if circuit.target not in ("bayes", "looking") else 0.0
    return first, first + circuit.times * (own + weight_error(4 * first * circuit.strength()))


def _certificate(
    circuit: Circuit | ParentsCircuit, task: Task | ParentsTask, dtype: torch.dtype
) -> Tempering | None:
    if isinstance(circuit, Circuit) and circuit.looking and isinstance(task, Task):
        return looking_error(
            task, max(circuit.head_of_offset) + 1, circuit.temper, circuit.looking, dtype
        )
    return certified(circuit, task, dtype)


def error_table(
    task: Task,
    *,
    target: str = "paper",
    lams: Sequence[float] = (100.0, 500.0, 5000.0),
    betas: Sequence[float] = (1.0, 100.0, 1000.0),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    **options: Any,
) -> list[dict[str, Any]]:
    """List the largest error over masks, temperatures and number formats.

    It is None where `construct` refuses the masks. A circuit that sets its own temperature has one line for each
    strength of the masks, with beta None.
    """
    rows: list[dict[str, Any]] = []
    for dtype, beta, lam in itertools.product(
        dtypes, betas if "beta" in option_names(target) else (None,), lams
    ):
        row: dict[str, Any] = {
            "dtype": dtype_name(dtype),
            "lam": lam,
            "beta": beta,
            "max_error": None,
        }
        try:
            model = construct(task, target=target, lam=lam, beta=beta, dtype=dtype, **options)
        except ValueError as refusal:
            row["refused"] = str(refusal)
        else:
            found = verify(model, task)
            row.update(max_error=found.max_error, tolerance=found.tolerance, ok=found.ok)
        rows.append(row)
    return rows


def adversarial(
    task: Task | ParentsTask, rng: torch.Generator
) -> dict[str, Int[Tensor, "batch time"]]:
    """Make sequences that chance would hardly draw, though possible ones where P has zeros."""
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


def _compare(
    found: Float[Tensor, "batch time _"], expected: Expected, kinds: Sequence[str]
) -> Comparison:
    at = expected.rows.nonzero().flatten()
    gap = torch.nan_to_num((found.double() - expected.value).abs(), nan=torch.inf)[:, at].amax(
        dim=-1
    )
    row, position = divmod(int(gap.argmax()), gap.shape[1])
    return Comparison(
        expected.site, int(at[0]), gap.max().item(), row, kinds[row], int(at[position])
    )


def _check_fit(model: Model, task: Task | ParentsTask, circuit: Circuit | ParentsCircuit) -> None:
    shape = (model.config.num_states, model.config.length, model.config.heads)
    heads = circuit.model_heads
    if isinstance(circuit, ParentsCircuit) or isinstance(task, ParentsTask):
        if not isinstance(circuit, ParentsCircuit) or not torch.equal(
            circuit.table, task.parents(task.length + 1)
        ):
            raise ValueError(
                "model and task do not fit: the circuit was written for other parents than the task's"
            )
        if shape != (task.num_states, task.length, heads):
            raise ValueError(
                f"model, task, circuit do not fit: the model has sizes {shape}, the circuit heads {heads}"
            )
        return
    if (task.lags, task.length) != (circuit.lags, circuit.length) or shape != (
        task.num_states,
        task.length,
        heads,
    ):
        raise ValueError(
            f"model, task, circuit do not fit: the model has {shape[0]} states, length {shape[1]}, heads {shape[2]}, "
            f"the task {task.num_states} states, length {task.length}, lags {task.lags}; "
            f"the circuit length {circuit.length}, heads {heads}, lags {circuit.lags}"
        )
