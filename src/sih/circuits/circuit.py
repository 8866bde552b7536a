"""Circuits for lags: `AnyCircuit` with the first layer and the copying that all share.

A kind of circuit is a final subclass of `Circuit` in its own file, and one line in
`sih.circuits.circuit_table.CIRCUITS`. Besides the methods of `AnyCircuit` it has
`weights`: the attention of its last layer to the token that each lag would copy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from sih.base.record import Increasing, Size
from sih.base.showing import Drawn
from sih.circuits.any_circuit import AnyCircuit, Expected
from sih.circuits.masks import Masks
from sih.circuits.positions import at_candidates, rows_from
from sih.heads.profiles import Profile
from sih.task import Task


@dataclass(frozen=True, kw_only=True)
class Circuit(AnyCircuit, Drawn):
    """All numbers behind the weights of a circuit for lags.

    >>> import sih
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=32))
    >>> model.circuit  # doctest: +NORMALIZE_WHITESPACE
    PaperCircuit(lags=(1, 2, 3), heads=3, length=32, beta=100, lam=500, temper=1,
            third='mask', evidence='mean')
    """

    drawing = "sih.results.plots.heads:draw_circuit"

    task_kind: ClassVar[Any] = Task
    only_heads: ClassVar[str] = "the one number of heads that this circuit has"
    """A description with the number of heads, if that is fixed; otherwise ""."""

    lags: Annotated[tuple[Size, ...], Increasing()]
    sink: bool = False
    """Whether second-layer heads use position 0 as a sink."""

    @abstractmethod
    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        """Return the last layer's attention to the token that each lag would copy."""

    def posterior(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"] | None:
        """Return the exact weights that the circuit approximates, if there are any."""
        return None

    def exact(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        """Yield the last layer's attention if its weights were the exact posterior."""
        posterior = self.posterior(tokens, task)
        if posterior is None:
            return
        last_attention = f"{len(self.model_heads)}.1/attention"
        rows = rows_from(self.first_exact_position, tokens)
        yield Expected(last_attention, rows, at_candidates(posterior, self.lags))

    @property
    def heads(self) -> int:
        """Return the number of second-layer heads."""
        return self.model_heads[1]

    @property
    def max_lag(self) -> int:
        """Return the largest lag."""
        return self.lags[-1]

    @property
    def masks(self) -> Masks:
        return Masks.of(self.lam, apart=self.sink)

    @property
    def pattern(self) -> tuple[int, ...]:
        """Return the second-layer head of each offset, if heads divide the past among
        them.
        """
        return ()

    @property
    def mixing(self) -> Profile | None:
        """Return the weights of the past in heads that mix lags, if they do."""
        return None

    def check_fit(self, task: Task) -> None:
        if (task.lags, task.length) != (self.lags, self.length):
            raise ValueError(
                f"circuit and task do not fit: the circuit is for lags {self.lags} and length "
                f"{self.length}, the task has lags {task.lags} and length {task.length}"
            )

    def lines(self, heads: str, **said: str) -> Iterator[str]:
        """Yield the lines of `describe`, given a phrase about the heads and other
        facts.
        """
        third = f", third layer by {said['third']}" if "third" in said else ""
        evidence = f", evidence {said['evidence']}" if "evidence" in said else ""
        yield f"lags {' '.join(map(str, self.lags))}, target {self.target}{third}"
        yield heads
        yield f"lam {self.lam:g}, beta {self.beta:g}, temper {self.temper:g}{evidence}"

    def _facts(self) -> Mapping[str, Any]:
        return {"lags": self.lags, "heads": self.heads, **super()._facts()}
