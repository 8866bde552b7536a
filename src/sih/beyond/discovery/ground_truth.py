"""A small set of circuits with known edges, on disk and in memory, and methods of
discovery measured on them.

Each is a constructed circuit among decoys and noise (`decoys.py`), soft or saturated,
in blocks or as a standard transformer whose stream is rotated.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sih.base.errors import check_choice, check_kind, check_path
from sih.base.showing import Drawn, Shown
from sih.beyond.discovery.decoys import rotated, with_decoys
from sih.beyond.discovery.discovery import (
    METHODS,
    Judgement,
    counterfactual_pairs,
    edge_scores,
    judge,
    roc,
)
from sih.beyond.discovery.edges import Edge, by_writer, circuit_edges
from sih.circuits.build import construct
from sih.circuits.verification import circuit_and_task
from sih.models import storage
from sih.models.base import Model
from sih.models.disentangled.dense import DisentangledTransformer
from sih.task import Task
from sih.task.matrices import random_transition_matrix

STATES, LENGTH, CONCENTRATION = 4, 24, 0.3
CIRCUITS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "1.2.3-soft": ((1, 2, 3), {"beta": 3.0}),
    "1.2.3-hard": ((1, 2, 3), {"beta": 100.0}),
    "1.2.3-one-head": ((1, 2, 3), {"beta": 100.0, "heads": 1}),
    "1.2.3-bayes": ((1, 2, 3), {"target": "bayes"}),
    "1.3.4-soft": ((1, 3, 4), {"beta": 3.0}),
    "1.3.4-hard": ((1, 3, 4), {"beta": 100.0}),
    "1.2-two-lags": ((1, 2), {"target": "two-lags"}),
    "1.2.3-relative": ((1, 2, 3), {"kind": "relative", "beta": 3.0}),
}
"""The lags and the arguments of `sih.construct` of each circuit, by name."""


@dataclass(frozen=True, eq=False)
class KnownCircuit(Shown):
    """A model, its task, and the edges of its circuit."""

    name: str
    model: Model
    task: Task
    edges: tuple[Edge, ...]

    def _facts(self) -> Mapping[str, Any]:
        kind = type(self.model).__name__
        return {
            "name": self.name,
            "model": f"{kind}, heads {self.model.config.heads}",
            "edges": len(self.edges),
        }

    def as_standard(self, seed: int = 0) -> "KnownCircuit":
        """Return the same circuit in a standard transformer with a rotated stream, with
        edges from head to head.
        """
        wanted = (
            "disentangled, with absolute positions, e.g. that of sih.known_circuit('1.2.3-soft')"
        )
        check_kind("model", self.model, DisentangledTransformer, wanted)
        return KnownCircuit(
            f"{self.name}, standard",
            rotated(cast(DisentangledTransformer, self.model), rng=seed),
            self.task,
            by_writer(self.edges),
        )


def known_circuit(name: str, seed: int = 0) -> KnownCircuit:
    """Return one of `CIRCUITS`, hidden among decoys.

    Args:
        name: The circuit's name.
        seed: Random seed for the matrix, the decoys and the noise.

    Returns:
        The model, its task, and the edges of its circuit.

    >>> import sih
    >>> sih.known_circuit("1.2-two-lags")
    KnownCircuit(name='1.2-two-lags', model='DisentangledTransformer, heads (2, 2, 1)', edges=13)
    """
    check_choice("name", name, tuple(CIRCUITS))
    lags, options = CIRCUITS[name]
    task = Task(
        random_transition_matrix(STATES, rng=seed, concentration=CONCENTRATION), lags, LENGTH
    )
    return _known(name, with_decoys(construct(task, **options), rng=seed, shift=0.05))


def save_circuits(folder: str | Path, circuits: Sequence[KnownCircuit]) -> None:
    """Write each circuit to its own folder, as `sih.save` does, with its edges in
    `notes.json`.
    """
    for circuit in circuits:
        edges = [[edge.source, edge.reader, edge.role] for edge in circuit.edges]
        circuit.model.notes = {**circuit.model.notes, "edges": edges}
        storage.save(circuit.model, Path(folder) / circuit.name)


def load_circuits(folder: str | Path) -> dict[str, KnownCircuit]:
    """Return the circuits in a folder, by name. Their edges are derived again from each
    circuit.

    Args:
        folder: A folder of `sih benchmark circuits`.

    Returns:
        A dict from name to circuit.

    >>> import sih, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_circuits(folder, [sih.known_circuit("1.2-two-lags")])
    ...     list(sih.load_circuits(folder))
    ['1.2-two-lags']
    """
    check_path(folder)
    paths = sorted(path.parent for path in Path(folder).glob(f"*/{storage.CONFIG}"))
    if not paths:
        raise ValueError(
            f"there are no circuits in {folder}; `sih benchmark circuits --out DIR` writes DIR/circuits"
        )
    return {path.name: _known(path.name, storage.load(path)) for path in paths}


def _known(name: str, model: Model) -> KnownCircuit:
    task = circuit_and_task(model)[1]
    assert isinstance(task, Task)
    return KnownCircuit(name, model, task, circuit_edges(model))


@dataclass(frozen=True)
class Measured:
    """The result of one method on one circuit, with its ROC curve."""

    circuit: str
    method: str
    judged: Judgement
    false_rates: tuple[float, ...]
    true_rates: tuple[float, ...]


@dataclass(frozen=True)
class Discovery(Drawn):
    """The results of every method on every circuit."""

    drawing = "sih.beyond.discovery.discovery_figure:draw_discovery"

    measured: tuple[Measured, ...]

    def _facts(self) -> Mapping[str, Any]:
        return {
            "circuits": len({found.circuit for found in self.measured}),
            "measured": len(self.measured),
        }

    def table(self) -> list[list[str]]:
        """Return one row per circuit and method, below a row of column names."""
        head = [
            "circuit",
            "method",
            "area",
            "precision",
            "by guessing",
            "ties",
            "true edges",
            "other edges",
        ]
        rows = []
        for found in self.measured:
            j = found.judged
            numbers = (j.area, j.precision, j.guessed, j.ties)
            rows.append(
                [
                    found.circuit,
                    found.method,
                    *(f"{x:.3f}" for x in numbers),
                    str(j.true),
                    str(j.others),
                ]
            )
        return [head, *rows]


def discover(circuit: KnownCircuit, *, pairs: int = 2, seed: int = 0) -> Iterator[Measured]:
    """Return the results of every method on a circuit."""
    drawn = counterfactual_pairs(circuit.task, pairs, seed=seed)
    for method in METHODS:
        scores = edge_scores(circuit.model, drawn, method)
        rates = (tuple(rate) for rate in roc(scores, circuit.edges))
        yield Measured(circuit.name, method, judge(scores, circuit.edges), *rates)
