"""The hand-written circuit with the attention nearest to a model's, on the same
sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.attention.head_matching import match_heads, total_variation, uniform_attention
from sih.base.errors import FieldError
from sih.circuits import CIRCUITS, Circuit
from sih.circuits.circuit_table import circuit_kind, circuits_of, option_names
from sih.heads import least_heads
from sih.task import Task

SAME, ALIKE = 0.05, 0.5
"""Total variation up to which a layer equals a circuit's, and share of uniform
attention's distance up to which it resembles it."""


def known_circuits() -> dict[str, dict[str, Any]]:
    """Return the reference circuits: every kind, and the paper's with other evidence."""
    return {
        **{target: {"target": target} for target in CIRCUITS},
        "paper, sink": {"target": "paper", "sink": True},
        "paper, summed": {"target": "paper", "evidence": "sum", "beta": 3.0},
        "paper, relative": {"target": "paper", "kind": "relative"},
    }


@dataclass(frozen=True)
class Resemblance:
    """Distance of a model's attention from one circuit's: mean total variation in each
    layer, heads matched.
    """

    circuit: str
    layers: tuple[float, ...]
    uniform: tuple[float, ...]
    """The same for uniform attention over the past, for comparison."""

    @property
    def distance(self) -> float:
        """Return the average over layers, relative to uniform attention: 0 is the
        circuit, 1 as far as uniform.
        """
        return sum(self.layers) / sum(self.uniform)

    @property
    def words(self) -> str:
        """Return in words whether the attention is the circuit's, or in which layers it
        resembles it.
        """
        if max(self.layers) <= SAME:
            return f"Its attention is that of the circuit '{self.circuit}'"
        pairs = enumerate(zip(self.layers, self.uniform, strict=True), 1)
        alike = [number for number, (far, flat) in pairs if far <= ALIKE * flat]
        if not alike:
            return f"Its attention is no known circuit's (the nearest is '{self.circuit}')"
        missing = [number for number in range(1, len(self.layers) + 1) if number not in alike]
        where = f"in {_layers(alike)}" if missing else "in every layer"
        but = f", not in {_layers(missing)}" if missing else ""
        return f"Its attention resembles the circuit '{self.circuit}' {where}{but}"

    def __str__(self) -> str:
        pairs = zip(self.layers, self.uniform, strict=True)
        return ", ".join(
            f"layer {n} {far:.2f} of {flat:.2f}" for n, (far, flat) in enumerate(pairs, 1)
        )


@torch.no_grad()
def resemblances(
    attention: Sequence[Float[Tensor, "batch _ query key"]],
    tokens: Int[Tensor, "batch time"],
    task: Task,
) -> list[Resemblance]:
    """Return the distances from every known circuit with as many layers, the nearest
    first.

    A circuit has as many second-layer heads as the model, or as it can use. A head of
    the circuit without a partner in the model counts 1. A head of the model without a
    partner counts its distance from uniform attention. A model's attention to a start
    token, its first key, matches no circuit with absolute positions.
    """
    heads = tuple(layer.shape[1] for layer in attention)
    if not heads:
        return []
    task, found = task.with_length(tokens.shape[1]), []
    attention = [layer[:, :, -task.length :] for layer in attention]  # rows of tokens
    for name, options in known_circuits().items():
        circuit = _resolve(task, options, heads)
        if circuit is not None and circuit.first_exact_position < task.length - 1:
            found.append(_compare(name, attention, tokens, task, circuit))
    return sorted(found, key=lambda each: each.distance)


def _layers(numbers: Sequence[int]) -> str:
    return f"layer{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, numbers))}"


def _resolve(task: Task, options: dict[str, Any], heads: tuple[int, ...]) -> Circuit | None:
    """Return a circuit with as many layers, and if possible no more heads than the
    model, or None.
    """
    given = dict(options)
    if given.get("kind") == "relative" and heads[1:2] != (1,):
        return None  # more heads in layer 2 share the work of the single head there
    circuits = circuits_of(given.pop("kind", "disentangled"))
    kind = circuit_kind(circuits, given.pop("target"))
    if "heads" in option_names(kind) and len(heads) > 1:
        given["heads"] = min(heads[1], least_heads(task.lags).heads)
    if "symmetric" in option_names(kind):
        given["symmetric"] = heads[0] > 1
    try:
        circuit = kind.resolve(task, kind.Options(**given), torch.float64)
    except FieldError:
        return None
    return circuit if len(circuit.model_heads) == len(heads) else None


def _compare(
    name: str,
    attention: Sequence[Float[Tensor, "batch _ query key"]],
    tokens: Int[Tensor, "batch time"],
    task: Task,
    circuit: Circuit,
) -> Resemblance:
    model = circuit.build(task, "probability", torch.float64)
    rows = slice(circuit.first_exact_position, tokens.shape[1] - 1)
    first = attention[0].shape[-1] - tokens.shape[1]
    before = max(first, model.first)  # keys ahead of the tokens, of the model or of the circuit
    flat = nn.functional.pad(uniform_attention(tokens.shape[1]), (before, 0))
    layers, uniform = [], []
    path = "written" if "written" in model.paths else None
    for ours, theirs in zip(attention, model.trace(tokens, path=path).attention, strict=True):
        found = nn.functional.pad(ours.double(), (before - first, 0))
        wanted = nn.functional.pad(theirs[:, :, model.first :], (before - model.first, 0))
        matched = match_heads(found, wanted, rows.start)
        spare = found[:, [h for h in range(found.shape[1]) if h not in matched]]
        from_circuit = [
            1.0 if h is None else total_variation(found[:, h], wanted[:, j])[:, rows].mean().item()
            for j, h in enumerate(matched)
        ]
        from_flat = [
            total_variation(head, flat)[:, rows].mean().item() for head in spare.unbind(dim=1)
        ]
        layers.append((sum(from_circuit) + sum(from_flat)) / len(matched))
        uniform.append(total_variation(flat, wanted)[..., rows].mean().item())
    return Resemblance(name, tuple(layers), tuple(uniform))
