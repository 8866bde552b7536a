"""Is the circuit in the weights? Run them and compare every layer with the closed form."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from sih.construction.build import construct
from sih.construction.circuit import Circuit, circuit_weights, normalised
from sih.construction.layers import key_weights
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.offsets import attention_at
from sih.models.sites import Trace
from sih.predictors import lag_posterior, mixture
from sih.task import Task, sample


@dataclass(frozen=True)
class Verification:
    """What was compared, on what, and how far off the worst of it was."""

    errors: dict[str, float]
    """The largest error of each thing compared."""
    where: dict[str, str]
    """Where it was: which sequence, which position."""
    tolerance: float
    first_row: int
    """Positions from here on (0-based) are claimed and were compared; for layers 1 and 2, all that the circuit uses."""
    posterior_error: float | None
    """Largest difference of a weight from the exact posterior, for the target "bayes"; `bound` is what is certified."""
    bound: float | None
    sequences: dict[str, int]
    settings: dict[str, Any]

    @property
    def max_error(self) -> float:
        return max(self.errors.values())

    @property
    def ok(self) -> bool:
        within = self.posterior_error is None or self.bound is None or self.posterior_error <= self.bound
        return self.max_error <= self.tolerance and within

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "max_error": self.max_error, "ok": self.ok}


def verify(
    model: DisentangledTransformer,
    task: Task,
    *,
    circuit: Circuit | None = None,
    size: int = 16,
    rng: torch.Generator | None = None,
) -> Verification:
    """Compare attention, stream and prediction of a constructed model with the closed form of its circuit.

    On `size` sequences of the task and on adversarial ones (constant, cycling, least likely steps, coin tosses). A
    model that was loaded has no `circuit` of its own: give the one it was saved with.
    """
    circuit = circuit if circuit is not None else getattr(model, "circuit", None)
    if circuit is None:
        raise ValueError("a model that was loaded does not know its circuit; give it: verify(model, task, circuit=...)")
    _check_fit(model, task, circuit)
    rng = rng if rng is not None else torch.Generator().manual_seed(0)
    named = {"of the task": sample(task, size, rng=rng).tokens, **adversarial(task, rng)}
    tokens = torch.cat(list(named.values()))
    kinds = [kind for kind, rows in named.items() for _ in range(len(rows))]
    with torch.no_grad():
        trace = model.trace(tokens)
        prediction = model.predict(tokens).double()
    expected = _expected(tokens, task, circuit)
    weights = circuit_weights(tokens, task, circuit)
    found = _found(trace, circuit)
    if model.config.readout == "probability":
        expected["prediction"] = mixture(weights, tokens, task)
        found["prediction"] = prediction
    errors, where = {}, {}
    for name, value in expected.items():
        first = _first_row(name, circuit)
        gap = torch.nan_to_num((found[name] - value).abs(), nan=torch.inf)[:, first:].amax(dim=-1)
        row, position = divmod(int(gap.argmax()), gap.shape[1])
        errors[name] = gap.max().item()
        where[name] = f"sequence {row} ({kinds[row]}), position {position + first}"
    posterior_error = None
    if circuit.target == "bayes":
        exact = lag_posterior(tokens, task)[:, circuit.first_row :]
        read = attention_at(found["layer 3 attention"], [lag - 1 for lag in circuit.lags])
        posterior_error = (read[:, circuit.first_row :] - exact).abs().max().item()
    return Verification(
        errors=errors,
        where=where,
        tolerance=circuit.rounding,
        first_row=circuit.first_row,
        posterior_error=posterior_error,
        bound=circuit.bound,
        sequences={kind: len(rows) for kind, rows in named.items()},
        settings={
            "dtype": model.config.dtype,
            **{name: getattr(circuit, name) for name in ("lam", "beta", "temper", "third", "evidence", "heads")},
        },
    )


def error_table(
    task: Task,
    *,
    lams: Sequence[float] = (100.0, 500.0, 5000.0),
    betas: Sequence[float] = (1.0, 100.0, 1000.0),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    **options: Any,
) -> list[dict[str, Any]]:
    """The largest error over masks, temperatures and number formats; None where `construct` refuses the masks."""
    rows: list[dict[str, Any]] = []
    for dtype, beta, lam in itertools.product(dtypes, betas, lams):
        row: dict[str, Any] = {"dtype": str(dtype).removeprefix("torch."), "lam": lam, "beta": beta, "max_error": None}
        try:
            model = construct(task, lam=lam, beta=beta, dtype=dtype, **options)
        except ValueError as refusal:
            row["refused"] = str(refusal)
        else:
            found = verify(model, task)
            row.update(max_error=found.max_error, tolerance=found.tolerance, ok=found.ok)
        rows.append(row)
    return rows


def adversarial(task: Task, rng: torch.Generator) -> dict[str, Int[Tensor, "batch time"]]:
    """Sequences that chance would hardly draw; only possible ones, where P has zeros."""
    length, states = task.length, task.num_states
    rows: dict[str, Tensor] = {}
    if (task.P > 0).all():
        rows["constant"] = torch.arange(states)[:, None].expand(-1, length)
        rows["cycling"] = torch.stack([torch.arange(length) % period for period in range(2, states + 1)])
        rows["coin tosses"] = torch.randint(states, (4, length), generator=rng)
    unlikely = torch.where(task.P > 0, task.P, torch.inf).argmin(dim=-1).tolist()
    least = []
    for lag in task.lags:
        row = torch.randint(states, (task.max_lag,), generator=rng).tolist()
        while len(row) < length:
            row.append(unlikely[row[-lag]])
        least.append(row)
    rows["least likely"] = torch.tensor(least)
    return rows


def _expected(tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit) -> dict[str, Tensor]:
    """Every layer's attention as the closed form has it, and the evidence where it is stored."""
    size, time = tokens.shape
    expected: dict[str, Tensor] = {}
    stored = []
    for head, sign in (("1.1", 1.0), ("1.2", -1.0)) if circuit.symmetric else (("1.1", 1.0),):
        p = normalised(tokens, task, circuit, sign * circuit.temper)
        first = torch.zeros((size, time, time), dtype=torch.float64)
        for j, lag in enumerate(circuit.lags):
            positions = torch.arange(circuit.max_lag, time)
            first[:, positions, positions - lag] = p[:, circuit.max_lag :, j]
        expected[f"layer 1 attention {head}"] = first
        stored.append((head, first))
    for index, keys in enumerate(key_weights(circuit), 1):
        gathered = keys[:time, :time].expand(size, -1, -1)
        expected[f"layer 2 attention 2.{index}"] = gathered
        for source, first in stored:
            holds = first.clone()
            holds[:, 0, 0] = 1.0  # position 0 can attend only to itself; the sink
            expected[f"stream 2.{index}/{source}/position"] = gathered @ holds
    third = torch.zeros((size, time, time), dtype=torch.float64)
    weights = circuit_weights(tokens, task, circuit)
    for j, lag in enumerate(circuit.lags):
        positions = torch.arange(lag - 1, time)
        third[:, positions, positions - lag + 1] = weights[:, positions, j]
    expected["layer 3 attention"] = third
    return expected


def _found(trace: Trace, circuit: Circuit) -> dict[str, Tensor]:
    found = {}
    firsts = ("1.1", "1.2") if circuit.symmetric else ("1.1",)
    for head in firsts:
        found[f"layer 1 attention {head}"] = trace[f"{head}/attention"].double()
    for index in range(1, circuit.heads + 1):
        found[f"layer 2 attention 2.{index}"] = trace[f"2.{index}/attention"].double()
        for source in firsts:
            block = trace.stream(f"2.{index}/{source}/position").double()
            found[f"stream 2.{index}/{source}/position"] = block[..., : block.shape[1]]
    found["layer 3 attention"] = trace["3.1/attention"].double()
    return found


def _first_row(name: str, circuit: Circuit) -> int:
    """From where on a layer is claimed: 1 where transitions are, 2 where its head has a key, 3 the circuit's own."""
    if name.startswith("layer 1"):
        return circuit.max_lag
    if name.startswith(("layer 2", "stream")):
        head = int(name.split("2.")[1].split("/")[0]) - 1
        return 0 if circuit.sink else circuit.max_lag + circuit.colours.index(head)
    return circuit.first_row


def _check_fit(model: DisentangledTransformer, task: Task, circuit: Circuit) -> None:
    shape = (model.config.num_states, model.config.length, model.config.heads)
    heads = (2 if circuit.symmetric else 1, circuit.heads, 1)
    if (task.lags, task.length) != (circuit.lags, circuit.length) or shape != (task.num_states, task.length, heads):
        raise ValueError(
            f"model, task, circuit do not fit: the model has {shape[0]} states, length {shape[1]}, heads {shape[2]}, "
            f"the task {task.num_states} states, length {task.length}, lags {task.lags}; "
            f"the circuit length {circuit.length}, heads {heads}, lags {circuit.lags}"
        )
