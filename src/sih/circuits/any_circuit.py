"""Base class of all circuits, for lags or for any parents, as `verify` uses it.

Each kind of circuit is a final class in its own file. It implements these methods:

    resolve     choose every number, from a task and the user's options
    write       the weights, layer by layer
    expected    the closed form of every value of a pass
    exact       the exact attention of the last layer, if it is approximated
    bounds      the largest error from rounding and from the approximation
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.base.errors import FieldError, described
from sih.base.record import Above, Between, Size, check, read
from sih.base.showing import Shown
from sih.circuits.log_matrix import ZERO
from sih.circuits.masks import Masks
from sih.models.base import Model
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.disentangled.written import WrittenBlocks

Positive = Annotated[float, Above(0)]
CircuitT = TypeVar("CircuitT", bound="AnyCircuit")


@runtime_checkable
class Blocks(Protocol):
    """Weights set block by block, as in a disentangled transformer."""

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]: ...

    def readout_block(self, name: str) -> Float[Tensor, "state block"]: ...


class Expected(NamedTuple):
    """One value of a forward pass by the closed form, with the rows where it holds."""

    site: str
    """Its hook point in a trace: "2.1/attention", "2.1/1.1/position", "output"."""
    rows: Bool[Tensor, " time"]
    value: Float[Tensor, "batch time _"]


class Bounds(NamedTuple):
    """Largest distances that rounding may cause between the weights and the closed
    form.
    """

    early: float
    """Bound for values before the last layer, where no score is multiplied by beta."""
    last: float
    """Bound for attention of the last layer, and for the output."""
    posterior: float | None
    """Certified distance of a weight from the exact posterior, None if there is no
    proof."""


@dataclass(frozen=True)
class CircuitOptions:
    """Options of a circuit: arguments of `construct`, flags of `sih construct`."""

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True, kw_only=True)
class AnyCircuit(ABC, Shown):
    """All numbers behind a circuit's weights, apart from the task's P and prior."""

    target: ClassVar[str]
    """The circuit's name in `construct`."""
    Options: ClassVar[type[CircuitOptions]]
    """The class of its options, which are also flags of `sih construct`."""
    task_kind: ClassVar[Any]
    """The class of tasks that it is for."""
    with_prior: ClassVar[bool] = False
    """Whether the last scores contain the log prior, as those of a posterior do."""
    bounds_hold_leaks: ClassVar[bool] = False
    """Whether `bounds` includes leaks through masks (otherwise `mask_strength.py` adds
    them)."""

    length: Size
    beta: Positive
    """Inverse temperature of the last layer."""
    lam: Positive = 500.0
    """Strength of the masks. The paper's is 500."""
    temper: Positive = 1.0
    """Exponent $\\gamma$ on the probabilities in the first layer. The paper's is 1."""
    log_zero: Annotated[float, Between(ZERO, 0)] = ZERO
    r"""The logarithm that replaces $\log 0$, before `temper`."""
    symmetric: bool = False
    r"""Whether layer 1 has two heads, $\pm\gamma$; half their difference is the
    evidence."""

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    @abstractmethod
    def resolve(cls: type[CircuitT], task: Any, options: Any, dtype: torch.dtype) -> CircuitT:
        """Return the circuit for this task; raise a `FieldError` if an option does not
        fit.
        """

    @abstractmethod
    def write(self, blocks: Blocks, task: Any, readout: str) -> None:
        """Write the weights into blocks of zeros."""

    @abstractmethod
    def expected(self, tokens: Int[Tensor, "batch time"], task: Any) -> Iterator[Expected]:
        """Yield the closed form of each value of the pass, layer by layer."""

    def exact(self, tokens: Int[Tensor, "batch time"], task: Any) -> Iterable[Expected]:
        """Return the last layer's attention under the exact posterior, if there is one."""
        return ()

    @abstractmethod
    def bounds(self, task: Any, dtype: torch.dtype) -> Bounds:
        """Return bounds on the distance that rounding may put between weights and
        closed form.
        """

    @abstractmethod
    def strength(self) -> float:
        """Return the largest difference that the evidence makes between the scores of
        two keys.
        """

    @abstractmethod
    def describe(self) -> Iterator[str]:
        """Yield a few lines that describe the circuit."""

    @abstractmethod
    def check_fit(self, task: Any) -> None:
        """Raise a ValueError unless the circuit fits the task."""

    def check_model(self, model: Model, task: Any) -> None:
        """Raise a ValueError if a model clearly has another circuit or task."""

    @property
    @abstractmethod
    def model_heads(self) -> tuple[int, ...]:
        """Return the number of heads of each layer."""

    @property
    @abstractmethod
    def first_exact_position(self) -> int:
        """Return the first position (0-based) from which the weights equal the closed
        form.
        """

    @property
    @abstractmethod
    def masks(self) -> Masks:
        """Return the numbers that masks add to the scores."""

    @property
    def times(self) -> float:
        """Return the factor from an error of a weight to an error of the output."""
        return 1.0

    @property
    def exponents(self) -> dict[str, float]:
        """Return the exponent of each first-layer head, by name."""
        if self.symmetric:
            return {"1.1": self.temper, "1.2": -self.temper}
        return {"1.1": self.temper}

    @property
    def shares(self) -> dict[str, float]:
        """Return each first-layer head's factor in the evidence."""
        return {"1.1": 0.5, "1.2": -0.5} if self.symmetric else {"1.1": 1.0}

    def build(self, task: Any, readout: str, dtype: torch.dtype) -> Model:
        """Return a model with these weights."""
        sizes = (task.num_states, task.length, self.model_heads)
        words: dict[str, Any] = {"readout": readout, "dtype": dtype}
        model = DisentangledTransformer(*sizes, temperature=1.0, init="zeros", **words)
        self.write(model, task, readout)
        return model

    def written(self, task: Any) -> WrittenBlocks:
        """Return the weights as blocks only, without a model."""
        blocks = WrittenBlocks(task.num_states, task.length, self.model_heads)
        self.write(blocks, task, "probability")
        return blocks

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON from which `from_dict` restores the circuit."""
        return {
            "target": self.target,
            **{each.name: getattr(self, each.name) for each in fields(self) if each.init},
        }

    @classmethod
    def from_dict(cls: type[CircuitT], values: Mapping[str, Any]) -> CircuitT:
        """Return the circuit that `to_dict` wrote, in this version or an earlier one."""
        return read(cls, cls.kept(values), "circuit")

    @classmethod
    def kept(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a file's entries without those that version 0.2 wrote for all
        circuits.
        """
        own = {each.name for each in fields(cls)}
        without = {"prior": cls.with_prior, "looking": 0.0, "profile": None}
        for name, value in without.items():
            if name not in own and values.get(name, value) != value:
                says = f"{name} of the circuit {cls.target!r} must be {value!r}"
                raise FieldError(
                    f"circuit.{name}", f"circuit.{says}; got {described(values[name])}"
                )
        unused = {*SAID_TWICE, *without} - own
        return {name: value for name, value in values.items() if name not in unused}

    def _facts(self) -> Mapping[str, Any]:
        facts = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        del facts["log_zero"]
        return {
            name: fact
            for name, fact in facts.items()
            if isinstance(fact, str | int | float) and fact is not False
        }


SAID_TWICE = frozenset({"target", "third", "head_of_offset", "evidence"})
"""Entries of version 0.2 that the class itself implies, if it has no such field."""
VERSION_0_2 = SAID_TWICE | {"prior", "looking", "profile"}
"""Entries that version 0.2 wrote for all circuits, whether they used them or not."""
