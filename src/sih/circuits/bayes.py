r"""The Bayes-optimal circuit: the posterior over lags, up to a certified error.

    layer 1    one head, or two of exponents $\pm\gamma$, with a small $\gamma$
    layer 2    adds up, $\sum_n \tilde p_{n,k} \approx a + \frac{\gamma}{K} \ell_k$
    layer 3    $w_k \propto \exp(\frac{K}{\gamma} \sum_n \tilde p_{n,k} + \log \pi_k)$

where a is common to all lags, $\ell_k$ is the log-likelihood of lag k and $\pi_k$ its
prior. The error and the best $\gamma$ are in `tempering.py`. The second layer keeps
lags apart (`offset_heads.py`), or mixes them without loss with fewer heads
(`mixed_heads.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import Size
from sih.circuits import steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.mask_strength import least_strength, with_masks
from sih.circuits.mixed_heads import MixedHeads
from sih.circuits.offset_heads import HeadOfOffset, OffsetHeads, choose_offsets
from sih.circuits.strengths import Strength
from sih.circuits.tempering import LOG_ZERO, best_tempering, tempered_bounds
from sih.heads.mixing import exact_profile
from sih.heads.profiles import Profile
from sih.heads.two_sided_fit import two_sided
from sih.predictors.evidence import lag_posterior
from sih.task import Task

BayesT = TypeVar("BayesT", bound="BayesCircuit")

GOOD = 1e-5
"""Certified error up to which fewer heads are preferred to a smaller error."""


@dataclass(frozen=True)
class BayesOptions(CircuitOptions):
    """Options of the Bayes-optimal circuit."""

    heads: Size | None = None
    """Second-layer heads. By default the fewest with a certified bound of at most 1e-5
    in this number format and length, or enough to mix no lags. With fewer than an exact
    circuit needs, some past transitions are ignored."""
    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    temper: Strength | None = None
    """Exponent on the probabilities in the first layer. By default the exponent with
    the least certified error. It determines the inverse temperature."""
    symmetric: bool = True
    """Whether layer 1 has two heads of opposite exponents. This costs a head and gains
    2 to 4 digits."""
    reading: Literal["query", "both"] = "query"
    """Whether the third layer reads the query's heads only, or the key's as well. With
    both, circuits with too few heads to be exact come as close as `sih.two_sided`
    finds."""
    profile: Profile | None = None
    """Heads that mix lags, as found by `sih.two_sided`, for example."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reading == "both" and self.heads is None:
            raise FieldError("heads", "reading='both' is for a given number of heads, e.g. heads=1")
        if self.profile is not None and (self.heads is not None or self.reading == "both"):
            raise FieldError("profile", "a profile has its own heads; leave heads and reading out")


@dataclass(frozen=True, kw_only=True)
class BayesCircuit(Circuit):
    """Bayes-optimal circuit with all its numbers."""

    target: ClassVar[str] = "bayes"
    Options: ClassVar[type[CircuitOptions]] = BayesOptions
    only_heads: ClassVar[str] = ""
    with_prior: ClassVar[bool] = True

    sink: bool = True
    head_of_offset: HeadOfOffset = ()
    """The second-layer head (from 0) of each offset, one period of it; -1 for none.
    Empty with a profile."""
    profile: Profile | None = None
    """Weights and reads of heads that mix lags. None if every head keeps them apart."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.second_layer  # # which checks head_of_offset
        if self.profile is not None:
            its = (self.profile.lags, self.profile.length)
            if its != (self.lags, self.length):
                says = f"profile is for lags {its[0]} and length {its[1]}, not {self.lags} and {self.length}"
                raise FieldError("profile", says)

    @classmethod
    def resolve(cls: type[BayesT], task: Task, options: BayesOptions, dtype: torch.dtype) -> BayesT:
        open_circuit = cls(
            lags=task.lags,
            length=task.length,
            beta=1.0,
            log_zero=LOG_ZERO[dtype],
            symmetric=options.symmetric,
            head_of_offset=choose_offsets(task.lags, options.heads),
        )
        circuit = open_circuit.tempered(task, options.temper, dtype)
        profile = wanted_profile(task, options, circuit.head_of_offset)
        if profile is not None:
            mixed = replace(open_circuit, head_of_offset=(), profile=profile)
            mixed = mixed.tempered(task, options.temper, dtype)
            chosen = options.heads is not None or options.profile is not None
            if chosen or is_good(mixed, task, options, dtype):
                circuit = mixed
        return with_masks(circuit, task, options.lam)

    def tempered(self: BayesT, task: Task, temper: float | None, dtype: torch.dtype) -> BayesT:
        """Return the circuit with this exponent, or with the one of least certified
        error.
        """
        if temper is None:
            size = self.second_layer.size
            temper = best_tempering(task, size, dtype, symmetric=self.symmetric).temper
        return replace(self, temper=temper, beta=len(self.lags) / temper)

    @cached_property
    def second_layer(self) -> OffsetHeads | MixedHeads:
        """Return the heads of the second layer."""
        if self.profile is not None:
            return MixedHeads(self.profile)
        return OffsetHeads.of(self, self.head_of_offset, "sum")

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        steps.attend_to_parents(blocks, task, self)
        self.second_layer.write(blocks, self.masks)
        scores = steps.candidate_scores(self) + steps.log_prior(task)
        scores = self.second_layer.read(blocks, self, scores)
        blocks.block("3.1", "position", "position").copy_(scores)
        steps.copy_law(blocks, task, self, readout)

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        p = steps.evidence(tokens, task, self)
        scores = self.second_layer.scores(p, self.beta)
        return torch.softmax(scores + task.lag_prior.log().to(p.device), dim=-1)

    def posterior(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        return lag_posterior(tokens, task)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        heads = self.second_layer
        return steps.expect_layers(tokens, task, self, heads.attention(), heads.first_rows)

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        heads = self.second_layer
        mixing = heads.mixing(task, self.temper, dtype)
        return tempered_bounds(self, task, heads.size, dtype, mixing=mixing)

    def strength(self) -> float:
        return self.second_layer.strength(self.beta)

    @property
    def residual(self) -> Float[Tensor, " offset"]:
        """Return each offset's defect: how far its evidence is from the correct weight."""
        if self.profile is not None:
            return self.profile.residual
        return torch.zeros(self.length - self.max_lag)

    @property
    def model_heads(self) -> tuple[int, int, int]:
        return len(self.exponents), self.second_layer.count, 1

    @property
    def first_exact_position(self) -> int:
        return self.max_lag - 1

    def describe(self) -> Iterator[str]:
        return self.lines(self.second_layer.describe(), third="position", evidence="sum")

    @property
    def pattern(self) -> tuple[int, ...]:
        return self.head_of_offset

    @property
    def mixing(self) -> Profile | None:
        return self.profile

    def to_dict(self) -> dict[str, Any]:
        profile = None if self.profile is None else self.profile.to_dict()
        return {**super().to_dict(), "profile": profile}

    @classmethod
    def kept(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        profile = values.get("profile")
        read_profile = None if profile is None else Profile.from_dict(profile)
        return {**super().kept(values), "profile": read_profile}

    def _facts(self) -> Mapping[str, Any]:
        mixed = {} if self.profile is None else {"residual": self.residual.max().item()}
        return {**super()._facts(), **mixed}


def wanted_profile(task: Task, options: BayesOptions, apart: tuple[int, ...]) -> Profile | None:
    """Return heads that mix lags, if they are requested and known.

    Args:
        apart: the head of each offset where lags are kept apart.
    """
    if options.profile is not None:
        return options.profile
    if options.heads is None:
        return exact_profile(task.lags, task.length, max(apart))
    if -1 not in apart:
        return None
    if options.reading == "both":
        return two_sided(task.lags, task.length, options.heads)
    return exact_profile(task.lags, task.length, options.heads)


def is_good(circuit: BayesCircuit, task: Task, options: BayesOptions, dtype: torch.dtype) -> bool:
    """Return whether a circuit with fewer heads is accurate enough, with the requested
    masks.
    """
    bound = circuit.bounds(task, dtype).posterior
    if bound is None or bound > GOOD:
        return False
    return least_strength(circuit, task) <= (options.lam or math.inf)
