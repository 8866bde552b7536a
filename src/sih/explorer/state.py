"""The state of the page: its task, sequence and models. `parse_state.py` reads one from
JSON, checked.
"""

from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from jaxtyping import Float
from torch import Generator, Tensor

from sih.base.errors import FieldError
from sih.circuits import CIRCUITS
from sih.task import Task
from sih.task.matrices import as_transition_matrix, random_transition_matrix

LAGS, STATES, LENGTH = 16, 10, 256
SEED = 2**53 - 1
"""The largest seed: a whole number that JavaScript represents exactly."""
TRAINED = "trained"
"""The kind of a model that is chosen by name."""
BOTH = "both"
"""The kind of a Bayes circuit read on both sides, so that few heads come close: some
need a fit."""
PRESETS = {"sticky": 0, "cycle": 1}
"""Offset of the state to which each row gives 0.8; the other states share the rest."""
FORMS: dict[str, dict[str, Any]] = {
    "paper": {},
    "mask": {"third": "mask"},
    "position": {"third": "position"},
    "fewer": {"heads": 1},
}
"""The forms of the paper's circuit that the page offers."""
RELATIVE: dict[str, dict[str, Any]] = {
    "relative": {"kind": "relative"},
    "relative-bayes": {"target": "bayes", "kind": "relative"},
}
"""The circuits with relative positions, of any length, with a start token."""


def shown_circuits() -> dict[str, dict[str, Any]]:
    """Return the circuits that the page offers, with their arguments of
    `sih.construct`.
    """
    others = {target: {"target": target} for target in CIRCUITS if target != "paper"}
    both = {"target": "bayes", "heads": 1, "reading": "both"}
    return {**FORMS, **others, BOTH: both, **RELATIVE}


@dataclass(frozen=True)
class Matrix:
    """The choice of P: a distribution with its seed and concentration, a preset, or the rows
    themselves.
    """

    kind: str = "dirichlet"
    seed: int = 0
    concentration: float = 1.0
    rows: tuple[tuple[float, ...], ...] | None = None

    @property
    def slow(self) -> bool:
        """Return whether it may take a second to draw: a sparse matrix is slow to
        balance, or cannot be.
        """
        return self.kind == "doubly-stochastic" and self.concentration < 0.5


@dataclass(frozen=True)
class ModelChoice:
    """One of `shown_circuits` with its sliders (None: the default of `sih.construct`),
    or a model by name.
    """

    kind: str = "paper"
    name: str | None = None
    heads: int | None = None
    lam: float | None = None
    beta: float | None = None
    temper: float | None = None
    looking: float | None = None
    evidence: str = "mean"

    @property
    def trained(self) -> bool:
        """Return whether it is a trained model rather than a circuit."""
        return self.kind == TRAINED

    @property
    def relative(self) -> bool:
        """Tell whether it is a circuit with relative positions."""
        return self.kind in RELATIVE

    def options(self) -> dict[str, Any]:
        """Return the arguments of `sih.construct` that differ from its defaults."""
        sliders = {
            name: getattr(self, name) for name in ("heads", "lam", "beta", "temper", "looking")
        }
        sliders["evidence"] = None if self.evidence == "mean" else self.evidence
        return shown_circuits()[self.kind] | {
            name: value for name, value in sliders.items() if value is not None
        }


@dataclass(frozen=True)
class State:
    """Everything that the page shows: its computation and, from `query` on, its view."""

    lags: tuple[int, ...] = (1, 2, 3)
    states: int = 5
    length: int = 128
    matrix: Matrix = field(default_factory=Matrix)
    seed: int = 19
    edits: tuple[tuple[int, int], ...] = ()
    """Pairs (position, state): tokens that were changed by hand."""
    models: tuple[ModelChoice, ...] = (ModelChoice(),)
    query: int | None = None
    """The selected position; None: at a third of the sequence."""
    revealed: bool = True
    zoom: int = 2
    arcs: str = "all"
    """The attention drawn as arcs: of a layer, "3", of a head, "2.1", or of all heads."""
    race: str = "weight"
    """The quantity of each lag in the evidence race: its weight, or its log evidence
    below the best ("evidence")."""
    speed: float = 3
    """Speed of the animation: 2 ** speed tokens per second."""
    offset: int = 0
    """Offset of the selected transition in heads that mix lags."""

    def choice(self, index: int) -> ModelChoice:
        """Return one of the models; raise a `FieldError` if there is none of this
        number.
        """
        if not 0 <= index < len(self.models):
            raise FieldError("models", f"there are {len(self.models)} models; got number {index}")
        return self.models[index]

    def task(self) -> Task:
        """Return the task; raise a `FieldError` about the matrix if it is invalid."""
        try:
            P = _built(self.matrix, self.states)
        except ValueError as error:
            raise FieldError("matrix", str(error)) from error
        if P.shape[0] != self.states:
            raise FieldError(
                "matrix", f"the matrix has {P.shape[0]} rows, but there are {self.states} states"
            )
        return Task(P, self.lags, self.length)


@lru_cache(maxsize=64)  # a matrix that is slow to balance is balanced once
def _built(matrix: Matrix, states: int) -> Float[Tensor, "state state"]:
    if matrix.kind == "rows":
        return as_transition_matrix(matrix.rows or ())
    if matrix.kind in PRESETS:
        rest = 0.2 / (states - 1)
        ahead = [(i + PRESETS[matrix.kind]) % states for i in range(states)]
        return as_transition_matrix(
            [[0.8 if j == to else rest for j in range(states)] for to in ahead]
        )
    rng = Generator().manual_seed(matrix.seed)
    return random_transition_matrix(
        states, rng=rng, concentration=matrix.concentration, law=matrix.kind
    )


def to_json(state: State) -> dict[str, Any]:
    """Return the state as JSON, entry by entry, without those of a first visit."""
    plain, first = asdict(state), asdict(State())
    changed = {name: entry for name, entry in plain.items() if entry != first[name]}
    if "matrix" in changed:
        changed["matrix"] = matrix_json(state.matrix)
    if "models" in changed:
        changed["models"] = [choice_json(model) for model in state.models]
    return changed


def matrix_json(matrix: Matrix) -> dict[str, Any]:
    return _without_defaults(asdict(matrix), Matrix())


def choice_json(choice: ModelChoice) -> dict[str, Any]:
    return _without_defaults(asdict(choice), ModelChoice())


def _without_defaults(entries: dict[str, Any], default: object) -> dict[str, Any]:
    return {name: entry for name, entry in entries.items() if entry != getattr(default, name)}
