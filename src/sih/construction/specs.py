"""What may be asked of a circuit: one spec for each kind, checked on its own, and resolved for a task into a `Circuit`.

`CIRCUITS` is the one table of kinds. A new circuit is a class here and a line there.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import torch

from sih.checks import FieldError, check_kind, check_number, described, dtype_name
from sih.construction.bayes import LOG_ZERO, best_tempering, certified_bound
from sih.construction.circuit import ZERO, Circuit, Evidence, log_probabilities, one_residue_each
from sih.construction.heads.fewer import head_offsets
from sih.construction.heads.least import Pattern, least_heads
from sih.construction.heads.mixing import exact_profile
from sih.construction.heads.two_sided_fit import two_sided
from sih.construction.looking import best_looking, looking_error
from sih.construction.parents_circuit import ParentsCircuit
from sih.construction.profiles import Profile
from sih.task import MatrixTask, Task

LIMIT = {torch.float64: 1e8, torch.float32: 1e4}
"""What stands for beta = infinity: gaps in the evidence above 40 / LIMIT are decided to the last digit."""
LEAK = 1e-6
"""The most attention that a mask may let through, in the worst case, before we refuse it."""
GOOD = 1e-5
"""The certified error of an attention weight up to which fewer heads are preferred to more digits."""


LARGEST = 1e15
"""The largest strength that may be asked for: beyond it float64 has no digit left for the scores."""
ROUGH = 0.05
"""The most that rounding may move a weight of the looking circuit before we refuse it."""
FINER = "use torch.float64, or larger ones, e.g. temper=1.0, looking=1.0"


@runtime_checkable
class CircuitSpec(Protocol):
    """Says what is asked of a circuit, whatever the task. Its fields are the options of `sih.construct`."""

    def resolve(self, task: Task, dtype: torch.dtype) -> Circuit:
        """Choose every number that was left open, for this task and number format, or raise a `FieldError`."""


@dataclass(frozen=True)
class PaperCircuit:
    """Asks for the circuit of Prop. 1, which serves any set of lags."""

    third: Literal["mask", "position"] | None = None
    """The paper's main form of the third layer ("mask", where every head takes one residue, as for contiguous lags) or
    the appendix's ("position", always possible). None: the former where it can be."""
    heads: int | None = None
    """Second-layer heads. None: the least number that loses nothing. With fewer, some past transitions go unused
    (`circuit.head_of_offset` has -1 for them); more are never needed."""
    evidence: Evidence = "mean"
    """Whether a lag's normalised probabilities are averaged (the paper's) or added up."""
    sink: bool | None = None
    """Let second-layer heads rest on position 0, so that the closed form holds at every position from the first
    possible one. Always with evidence "sum"; the paper's circuit has none."""
    lam: float | None = None
    """The masks' strength. None: 500, or as much as the scores need where evidence is summed."""
    beta: float = 100.0
    """Inverse temperature of the third layer; math.inf for the limit."""
    temper: float = 1.0
    """Exponent on the probabilities in the first layer, 1 in the paper."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, beta=self.beta, temper=self.temper)
        check_word("evidence", self.evidence, ("mean", "sum"))
        if self.third is not None:
            check_word("third", self.third, ("mask", "position"))
        if self.sink is not None:
            check_kind("sink", self.sink, bool, "True or False")
        if self.evidence == "sum" and self.sink is False:
            raise FieldError(
                "sink", "summed evidence needs the sink: without it a head averages; leave sink out"
            )

    def resolve(self, task: Task, dtype: torch.dtype) -> Circuit:
        pattern = _pattern(task, self.heads)
        sink = self.evidence == "sum" if self.sink is None else self.sink
        by_mask = one_residue_each(pattern.colours) and not sink
        if self.third == "mask" and not by_mask:
            why = "with a sink" if sink else f"for the pattern {pattern.colours}"
            needs = "the mask form needs heads that take one residue each and no sink"
            raise FieldError("third", f"{needs}, not {why}; use 'position'")
        third, beta = self.third or ("mask" if by_mask else "position"), finite(self.beta, dtype)
        circuit = Circuit(
            "paper", third, task.lags, task.length, pattern.colours, self.evidence, beta
        )
        return _with_masks(replace(circuit, temper=self.temper, sink=sink), task, self.lam)


@dataclass(frozen=True)
class TwoLagCircuit:
    """Asks for the paper's single head for two lags, with a third layer of its own and mean evidence."""

    lam: float | None = None
    """The masks' strength. None: 500, or as much as the scores need."""
    beta: float = 100.0
    """Inverse temperature of the third layer; math.inf for the limit."""
    temper: float = 1.0
    """Exponent on the probabilities in the first layer, 1 in the paper."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, beta=self.beta, temper=self.temper)

    def resolve(self, task: Task, dtype: torch.dtype) -> Circuit:
        if len(task.lags) != 2:
            raise FieldError(
                "target", f"the target 'two-lags' is for two lags, e.g. (1, 3); got {task.lags}"
            )
        d, beta = task.lags[1] - task.lags[0], finite(self.beta, dtype)
        circuit = Circuit(
            "two-lags", "key", task.lags, task.length, (0,) * d + (-1,) * d, "mean", beta
        )
        return _with_masks(replace(circuit, temper=self.temper), task, self.lam)


@dataclass(frozen=True)
class BayesCircuit:
    """Asks for the Bayesian model average, up to the bound that `sih.verify` states."""

    heads: int | None = None
    """Second-layer heads. None: the fewest whose certified bound, in this number format and length, is at most `GOOD`,
    or as many as it takes to mix nothing. With fewer than an exact circuit needs, some past transitions go unused."""
    lam: float | None = None
    """The masks' strength. None: as much as the scores need, 500 at least."""
    temper: float | None = None
    """Exponent on the probabilities in the first layer. None: the one with the least certified error. The inverse
    temperature follows from it: the number of lags / temper."""
    symmetric: bool = True
    """Two first-layer heads of opposite exponent, which cost a head and win two to four digits."""
    reading: Literal["query", "both"] = "query"
    """Whether the third layer reads what the query's heads hold, or the key's as well: then `heads` too few to be exact
    come as near as `two_sided` finds (`circuit.residual`)."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, temper=self.temper)
        check_kind("symmetric", self.symmetric, bool, "True or False")
        check_word("reading", self.reading, ("query", "both"))
        if self.reading == "both" and self.heads is None:
            raise FieldError("heads", "reading='both' is for a given number of heads, e.g. heads=1")

    def resolve(self, task: Task, dtype: torch.dtype) -> Circuit:
        dtype_name(dtype)
        unmixed = self._circuit(task, dtype, _pattern(task, self.heads).colours, None)
        if self.reading == "both" and self.heads is not None:
            profile: Profile | None = two_sided(task.lags, task.length, self.heads)
        else:
            profile = exact_profile(
                task.lags, task.length, unmixed.heads - 1 if self.heads is None else self.heads
            )
        if profile is None or (self.heads is not None and -1 not in unmixed.head_of_offset):
            return _with_masks(unmixed, task, self.lam)
        mixed = self._circuit(task, dtype, (), profile)
        if self.heads is None:
            bound = certified_bound(mixed, task, dtype)
            if bound is None or bound > GOOD or needed_lam(mixed, task) > (self.lam or math.inf):
                mixed = unmixed
        return _with_masks(mixed, task, self.lam)

    def _circuit(
        self, task: Task, dtype: torch.dtype, colours: tuple[int, ...], profile: Profile | None
    ) -> Circuit:
        """Return a circuit without masks yet."""
        circuit = Circuit(
            "bayes",
            "position",
            task.lags,
            task.length,
            colours,
            "sum",
            beta=1.0,
            sink=True,
            prior=True,
        )
        circuit = replace(
            circuit, log_zero=LOG_ZERO[dtype], symmetric=self.symmetric, profile=profile
        )
        temper = self.temper or best_tempering(task, circuit.size, dtype, self.symmetric).temper
        return replace(circuit, temper=temper, beta=len(task.lags) / temper)


@dataclass(frozen=True)
class LookingCircuit:
    """Asks for the circuit of `looking.py`, whose second layer tells the lags apart by where it looks.

    It has one head fewer than the paper's, and leaves the offsets 1 .. max_lag - 2 out.
    """

    lam: float | None = None
    """The masks' strength. None: as much as the scores need, 500 at least."""
    temper: float | None = None
    """Exponent on the probabilities in the first layer. None: that of the least certified error, as for `looking`."""
    looking: float | None = None
    """How strongly the second layer looks where a parent was found, at most 10."""

    def __post_init__(self) -> None:
        check_numbers(lam=self.lam, temper=self.temper)
        if self.looking is not None:
            wanted = "a positive strength, at most 10, e.g. 1.0"
            check_number("looking", self.looking, 0, wanted=wanted)
            if not 0 < self.looking <= 10:
                raise FieldError("looking", f"looking is {wanted}; got {self.looking}")

    def resolve(self, task: Task, dtype: torch.dtype) -> Circuit:
        dtype_name(dtype)
        colours = least_heads(task.lags).colours
        best = best_looking(task, max(colours) + 1, dtype)
        temper, looking = self.temper or best[0], self.looking or best[1]
        if temper * looking > task.length:
            most = f"temper times looking is at most the length, {task.length}, or the sink has no weight left"
            raise FieldError("temper", f"{most}; got temper {temper:g}, looking {looking:g}")
        if looking_error(task, max(colours) + 1, temper, looking, dtype).rounding > ROUGH:
            raise FieldError(
                "dtype",
                f"{dtype} has too few digits for temper {temper:g}, looking {looking:g}; {FINER}",
            )
        beta = len(task.lags) / temper
        circuit = Circuit(
            "looking",
            "looking",
            task.lags,
            task.length,
            colours,
            "sum",
            beta,
            sink=True,
            prior=True,
        )
        circuit = replace(circuit, temper=temper, looking=looking, log_zero=LOG_ZERO[dtype])
        return _with_masks(circuit, task, self.lam)


SpecT = TypeVar("SpecT")
CIRCUITS: dict[
    str, type[PaperCircuit] | type[TwoLagCircuit] | type[BayesCircuit] | type[LookingCircuit]
] = {
    "paper": PaperCircuit,
    "two-lags": TwoLagCircuit,
    "bayes": BayesCircuit,
    "looking": LookingCircuit,
}


def circuit_spec(target: str, **options: Any) -> CircuitSpec:
    """Return the spec of this kind of circuit.

    An option that is None is left to the circuit, one that it lacks is an error.

    >>> circuit_spec("two-lags", beta=3.0, heads=None)
    TwoLagCircuit(lam=None, beta=3.0, temper=1.0)
    """
    return named_spec(CIRCUITS, target, options)


def named_spec(
    circuits: Mapping[str, type[SpecT]], target: str, options: Mapping[str, Any]
) -> SpecT:
    """Return the spec that a table has under this name, with these options, or raise a `FieldError`."""
    if not isinstance(target, str) or target not in circuits:
        raise FieldError(
            "target", f"target is {' or '.join(map(repr, circuits))}; got {described(target)}"
        )
    given = {name: value for name, value in options.items() if value is not None}
    has = {other: [option.name for option in fields(spec)] for other, spec in circuits.items()}  # type: ignore[arg-type]
    for name in given:
        if name not in has[target]:
            of = [repr(other) for other in circuits if name in has[other]]
            whose = f" (it is one of {', '.join(of)})" if of else ""
            its = ", ".join(has[target])
            raise FieldError(
                name, f"the circuit {target!r} has no option {name!r}{whose}; its options are {its}"
            )
    return circuits[target](**given)


def option_names(target: str) -> tuple[str, ...]:
    """Return the names of a circuit's options."""
    return tuple(option.name for option in fields(CIRCUITS[target]))


def needed_lam(circuit: Circuit | ParentsCircuit, task: MatrixTask) -> float:
    """Return the least strength with which the masks let through at most `LEAK` of the attention."""
    return (max(log_leaks(circuit, task)) - math.log(LEAK)) / 2


def log_leaks(circuit: Circuit | ParentsCircuit, task: MatrixTask) -> tuple[float, float]:
    r"""Return the logarithm of the most attention that masks of strength 0 let through, in layer 1 and in layer 3.

    A mask multiplies the weight of an unwanted key by $e^{-2\lambda}$; the other terms of the scores may favour it. In
    layer 1 the wanted keys have together at least $p_{min}^\gamma$ (one of them is possible), the others at most 1
    each. In layer 2 all terms are masks, and a sink only adds weight to what is wanted. In layer 3 the blocks B meet
    vectors of non-negative numbers that sum to 1, so one key is ahead of another by no more than the sum of the
    heads' strengths (for two lags, where B has both signs, by twice that). Of the prior, some lag has 1/K at least.
    """
    others = math.log(circuit.length) + (math.log(len(task.hypotheses)) if circuit.prior else 0.0)
    logs = log_probabilities(task, circuit, circuit.temper)
    possible = logs[task.P > 0] if circuit.log_zero == ZERO else logs
    first = -possible.min().item() if not circuit.symmetric else (logs.max() - logs.min()).item()
    return others + first, others + circuit.strength()


def _with_masks(circuit: Circuit, task: Task, lam: float | None) -> Circuit:
    """Give the circuit masks of strength `lam`, or strong enough if None, and refuse weak ones and short tasks."""
    if circuit.first_exact_position >= circuit.length:
        right = f"for the lags {circuit.lags} this circuit is right from position {circuit.first_exact_position} on"
        other = f"use a longer task, or evidence='sum', right from {circuit.max_lag - 1}"
        raise FieldError("length", f"length {circuit.length} is too short: {right}; {other}")
    return replace(circuit, lam=mask_strength(circuit, task, lam))


def mask_strength(circuit: Circuit | ParentsCircuit, task: MatrixTask, lam: float | None) -> float:
    """Return the masks' strength, `lam` or, if None, as much as the circuit needs, and refuse one that is too small."""
    needed = needed_lam(circuit, task)
    if lam is not None and lam < needed:
        leak = f"in the worst case more than {LEAK:g} of the attention would leave the allowed positions"
        why = f"{leak}, for P's smallest entry, the length and beta; use lam >= {math.ceil(needed)}"
        raise FieldError("lam", f"lam={lam:g} is too small: {why}")
    return max(500.0, needed) if lam is None else lam


def _pattern(task: Task, heads: int | None) -> Pattern:
    return least_heads(task.lags) if heads is None else head_offsets(task.lags, heads)


def finite(beta: float, dtype: torch.dtype) -> float:
    dtype_name(dtype)
    return LIMIT[dtype] if math.isinf(beta) else float(beta)


def check_word(name: str, value: object, words: tuple[str, ...]) -> None:
    """Raise a FieldError unless the value is one of the words."""
    if not isinstance(value, str) or value not in words:
        raise FieldError(name, f"{name} is {' or '.join(map(repr, words))}; got {described(value)}")


def check_numbers(
    *, lam: float | None = None, beta: float | None = None, temper: float | None = None
) -> None:
    wanted = {
        "beta": (
            beta,
            f"a positive inverse temperature, at most {LARGEST:g} (math.inf for the limit)",
        ),
        "temper": (temper, f"a positive exponent, at most {LARGEST:g}, 1 in the paper"),
        "lam": (lam, f"a positive mask strength, at most {LARGEST:g}, 500 in the paper"),
    }
    for name, (value, what) in wanted.items():
        if value is not None:
            check_number(name, value, 0, wanted=what)
            limit = name == "beta" and math.isinf(value)
            if value == 0 or (value > LARGEST and not limit):
                raise FieldError(name, f"{name} is {what}; got {value}")
