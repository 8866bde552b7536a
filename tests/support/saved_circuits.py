"""Circuits as today's code saves them, for `tests/golden/circuits.jsonl`: a line for each, to be read and rebuilt.

    cd tests && python -m support.saved_circuits        writes the file anew, where a change is wanted

A line holds what `sih.construct` was asked for, the notes that it wrote (notes.json, as text), two sums of each weight,
and what `sih.verify` certified.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import sih
from sih.base.errors import DTYPES
from sih.circuits.circuit_table import read_circuit
from sih.models.base import Model
from sih.task import ParentsTask, Task

FILE = Path(__file__).parents[1] / "golden" / "circuits.jsonl"
P = ((0.5, 0.3, 0.2), (0.1, 0.6, 0.3), (0.25, 0.25, 0.5))
WITH_ZEROS = ((0.0, 0.6, 0.4), (0.5, 0.0, 0.5), (0.2, 0.3, 0.5))
LENGTH = 20
LAGS = (
    (1,),
    (3,),
    (1, 2),
    (2, 5),
    (1, 3),
    (2, 4),
    (1, 2, 3),
    (1, 3, 4),
    (2, 3, 7),
    (1, 2, 3, 4),
    (1, 2, 4, 8),
    (1, 2, 3, 4, 5),
)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "paper": [
        {},
        {"third": "position"},
        {"evidence": "sum"},
        {"sink": True},
        {"heads": 1},
        {"beta": math.inf, "temper": 0.5},
        {"beta": 3.0, "lam": 700.0, "readout": "logit"},
        {"dtype": "float32"},
    ],
    "two-lags": [
        {},
        {"beta": 3.0, "temper": 0.5},
        {"beta": math.inf, "lam": 600.0},
        {"dtype": "float32"},
    ],
    "bayes": [
        {},
        {"symmetric": False},
        {"heads": 1},
        {"heads": 2, "symmetric": False},
        {"temper": 0.01, "readout": "logit"},
        {"dtype": "float32"},
        {"lam": 900.0},
        {"kind": "standard"},
        {"kind": "standard", "readout": "logit"},
    ],
    "looking": [
        {},
        {"temper": 1.0, "looking": 1.0},
        {"temper": 0.1, "lam": 900.0, "readout": "logit"},
    ],
}
OF_PARENTS: dict[str, list[dict[str, Any]]] = {
    "paper": [
        {},
        {"third": "slots"},
        {"third": "parents", "evidence": "sum"},
        {"beta": 3.0, "temper": 0.5, "lam": 700.0},
    ],
    "bayes": [{}, {"symmetric": False, "third": "slots"}, {"temper": 0.01, "dtype": "float32"}],
}
FITTED = (1, 3, 4)
"""Lags for which heads that read both sides are fitted, which takes seconds."""


def asked() -> Iterator[tuple[Task | ParentsTask, str, dict[str, Any]]]:
    """Yield tasks, targets and options. Every third lag set has zeros in P, or a prior."""
    for number, lags in enumerate(LAGS):
        prior = (
            [float(k + 1) / sum(range(1, len(lags) + 1)) for k in range(len(lags))]
            if number % 3 == 1
            else None
        )
        task = Task(WITH_ZEROS if number % 3 == 2 else P, lags, LENGTH, prior)
        for target, several in OPTIONS.items():
            for options in several[: None if number % 2 == 0 else 3]:
                yield task, target, options
    task = Task(P, FITTED, LENGTH)
    for options in (
        {"heads": 1, "reading": "both"},
        {"heads": 1, "reading": "both", "symmetric": False},
    ):
        yield task, "bayes", options
    for hypotheses in (2, 3):
        trees = sih.random_parents(hypotheses, 14, rng=hypotheses)
        for target, several in OF_PARENTS.items():
            for options in several:
                yield ParentsTask(P, trees, 14), target, options


def saved_lines() -> Iterator[dict[str, Any]]:
    """Yield what is kept of each circuit that can be had."""
    for task, target, options in asked():
        given = {**options, **({"dtype": DTYPES[options["dtype"]]} if "dtype" in options else {})}
        try:
            model = constructed(task, target, given)
        except ValueError:
            continue
        found = sih.verify(model)
        assert found.ok, (task, target, options)
        yield {
            "target": target,
            "options": options,
            "notes": model.notes,
            "sums": sums(model),
            "certified": {
                "tolerance": found.tolerance,
                "bound": found.bound,
                "first": found.first_exact_position,
            },
        }


def constructed(task: Task | ParentsTask, target: str, options: dict[str, Any]) -> Model:
    """Construct a circuit by the door of its task."""
    if isinstance(task, ParentsTask):
        return sih.construct_parents(task, target=target, **options)
    model: Model = sih.construct(task, target=target, **options)
    return model


def sums(model: Model) -> dict[str, tuple[float, float]]:
    """Return of each weight the sum of its sizes, and of its entries times cosines, which tell where they stand."""
    found = {}
    for name, weight in model.state_dict().items():
        entries = weight.detach().double().flatten()
        waves = torch.arange(len(entries), dtype=torch.float64).mul(0.7).cos()
        found[name] = (rounded(entries.abs().sum().item()), rounded((entries * waves).sum().item()))
    return found


def rounded(value: float) -> float:
    return float(f"{value:.12g}")


def rebuilt(line: dict[str, Any]) -> Model:
    """Write the weights anew from the notes alone. The model carries its notes, and no circuit but in them."""
    notes, options = line["notes"], line["options"]
    circuit = read_circuit(notes["circuit"], options.get("kind", "disentangled"))
    task = circuit.task_kind(**notes["task"])
    readout, dtype = options.get("readout", "probability"), DTYPES[options.get("dtype", "float64")]
    model = circuit.build(task, readout, dtype)
    model.notes = notes
    return model.requires_grad_(False)


if __name__ == "__main__":
    FILE.write_text("".join(json.dumps(line) + "\n" for line in saved_lines()))
