r"""Circuits with every number chosen, and the closed form that their weights must equal.

At query i (0-based) the third layer's score of lag k is

$$ E_{i,k} = \sum_h b_h(i) \sum_{o \in C_h} \tilde p_{i-o,\,k}, \qquad
   \tilde p_{n,k} = \frac{p_{n,k}^\gamma}{\sum_l p_{n,l}^\gamma}, \quad p_{n,k} = P_{s_{n-k},\,s_n}, $$

over the transitions $\hat k \le i - o$, where head h of the second layer takes the offsets $C_h$ (`head_of_offset`).
The weights of the lags are the softmax of E. What $b_h$ is depends on the evidence:

- mean, the paper's: $\beta\,w_h / n_h(i)$ with $n_h(i)$ the number of transitions head h sees and $w_h$ its share of
  the offsets relative to the average head's (1 where all heads take equally many);
- mean with a sink: $\beta / \sum_h n_h(i)$, Prop. 1 to the letter;
- sum (always with a sink): $\beta$.

Where lags mix in a head (`profile`), a transition's evidence counts by the profile's matrices instead: $E_i = \beta
\sum_o J F_o J\,\tilde p_{i-o}$, the sum itself where the profile is exact.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.checks import Tokens, check_kind, check_sizes
from sih.construction.profiles import Profile
from sih.evidence import check_states, normalised_probabilities
from sih.files import check_entries
from sih.showing import Drawn, coloured_cells
from sih.task import MatrixTask, Task, check_lags, check_task

Third = Literal["mask", "position", "key", "looking"]
Evidence = Literal["mean", "sum"]

ZERO = -1e4
"""Written for log 0: its exponential is 0 in float32 and float64, and 0 times it is 0."""


NUMBER = (int, float)
ENTRIES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("target", "third", "evidence"), str),
    "length": int,
    **dict.fromkeys(("beta", "lam", "temper", "log_zero", "looking"), NUMBER),
}
"""What a circuit's JSON holds, besides lists, `SWITCHES` and a profile."""
SWITCHES = ("sink", "symmetric", "prior")


@runtime_checkable
class Choices(Protocol):
    """Says what stands for the logarithm of a probability 0."""

    @property
    def log_zero(self) -> float: ...


@dataclass(frozen=True)
class Circuit(Drawn):
    """Holds every choice behind a circuit's weights, apart from the task's P and prior over lags.

    >>> import sih
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=32))
    >>> model.circuit  # doctest: +NORMALIZE_WHITESPACE
    Circuit(target='paper', third='mask', lags=(1, 2, 3), length=32, heads=3,
            evidence='mean', beta=100, lam=500, temper=1)
    """

    target: str
    """The kind of circuit, a name in `sih.construction.specs.CIRCUITS`."""
    third: Third
    lags: tuple[int, ...]
    length: int
    head_of_offset: tuple[int, ...]
    """The second-layer head, from 0, that takes each offset; one period of it, -1 where none does, empty with a
    `profile`."""
    evidence: Evidence
    beta: float
    lam: float = 500.0
    """The masks' strength; the paper's is 500."""
    temper: float = 1.0
    sink: bool = False
    log_zero: float = ZERO
    """What stands for the logarithm of a probability 0, before `temper`."""
    symmetric: bool = False
    """Two first-layer heads, with exponents +temper and -temper; the evidence is half the difference of theirs."""
    prior: bool = False
    """The scores hold the logarithm of the task's prior over lags."""
    looking: float = 0.0
    """How strongly second-layer heads look where layer 1 found a parent (`looking.py`), 0 if they do not."""
    profile: Profile | None = None
    """Weights and reads of heads that take all offsets, each with a weight of its own, and mix lags."""

    def _facts(self) -> Mapping[str, Any]:
        names = (
            "target",
            "third",
            "lags",
            "length",
            "heads",
            "evidence",
            "beta",
            "lam",
            "temper",
            "sink",
            "symmetric",
        )
        facts = {name: getattr(self, name) for name in names}
        if self.profile is not None:
            facts["residual"] = self.residual.max().item()
        return {name: value for name, value in facts.items() if value is not False}

    def _pictures(self) -> Iterator[str]:
        if self.profile is None:
            heads = self.heads_at(torch.arange(min(24, self.length))).tolist()
            yield coloured_cells(
                [[(str(h) if h >= 0 else "-", h) for h in heads]], "the head that takes each offset"
            )

    @property
    def max_lag(self) -> int:
        """Return the largest lag."""
        return self.lags[-1]

    @property
    def heads(self) -> int:
        """Count the second-layer heads."""
        if self.profile is not None:
            return self.profile.heads
        colours = max(self.head_of_offset) + 1
        return max(colours - 1, 1) if self.looking else colours

    @property
    def residual(self) -> Float[Tensor, " offset"]:
        """Return how far each offset's evidence is from counting as it should: 0 but for an inexact profile."""
        return (
            torch.zeros(self.length - self.max_lag)
            if self.profile is None
            else self.profile.residual
        )

    @property
    def model_heads(self) -> tuple[int, int, int]:
        """Count the heads of each layer."""
        return len(self.exponents), self.heads, 1

    @property
    def exponents(self) -> dict[str, float]:
        """Give the exponent of each first-layer head, by its name."""
        return {"1.1": self.temper, "1.2": -self.temper} if self.symmetric else {"1.1": self.temper}

    @property
    def first_exact_position(self) -> int:
        """Find the first position (0-based) from which the attention equals the closed form."""
        if self.sink:
            return self.max_lag - 1
        if self.third == "key":
            return (
                2 * self.max_lag - 1
            )  # the older key, max_lag - 1 back, must have seen a transition itself
        # Every head needs an allowed key at the query, and in the mask form at the attended keys too.
        ready = self.max_lag + max(self.head_of_offset.index(head) for head in range(self.heads))
        return ready + (self.max_lag - 1 if self.third == "mask" else 0)

    def heads_at(self, offsets: Int[Tensor, " *shape"]) -> Int[Tensor, " *shape"]:
        """Return the head of each offset, negative ones included, and -1 where none takes it."""
        return torch.tensor(self.head_of_offset)[offsets % len(self.head_of_offset)]

    def counts(self, time: int | None = None) -> Int[Tensor, "time head"]:
        """Count n_h(i), the transitions that head h sees from position i, at `length` or `time` positions."""
        time = self.length if time is None else time
        offsets = self.heads_at(torch.arange(max(time - self.max_lag, 0)))
        taken = torch.nn.functional.one_hot(offsets + 1, self.heads + 1)[:, 1:]
        before = torch.zeros((min(time, self.max_lag), self.heads), dtype=torch.int64)
        return torch.cat([before, taken.cumsum(dim=0)])

    def shares(self) -> list[float]:
        """Return w_h, each head's share of the offsets relative to the average head's."""
        taken = [self.head_of_offset.count(head) for head in range(self.heads)]
        return [count * self.heads / sum(taken) for count in taken]

    @property
    def size(self) -> float:
        """Bound what the heads together add to a score of summed evidence, over beta."""
        return (
            float(self.counts()[-1].clamp_min(1).sum())
            if self.profile is None
            else self.profile.size
        )

    @property
    def times(self) -> float:
        """Bound how much larger an error of the output may be than one of an attention weight."""
        return 1.0

    def strength(self) -> float:
        """Bound how far the third layer's evidence can put one key ahead of another.

        A profile's reads have both signs, and so has what is taken off in the position block: four times its size.
        """
        if self.looking:  # a transition's attention varies by at most a factor e^(2 looking)
            varies = math.expm1(2 * self.looking) / self.looking
            return 2 * self.beta * (1 + self.length * math.sqrt(self.heads) * varies)
        if self.evidence == "sum":
            return self.beta * self.size * (1 if self.profile is None else 4)
        return self.beta * (2 if self.third == "key" else self.heads)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON that `from_dict` makes the same circuit of."""
        profile = None if self.profile is None else self.profile.to_dict()
        return {**asdict(replace(self, profile=None)), "profile": profile}

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Circuit":
        """Make a circuit of what `to_dict` wrote, or raise a ValueError: it may be anybody's file."""
        check_told(values, "lags", "head_of_offset")
        profile, heads = values.get("profile"), values["head_of_offset"]
        lists = {
            "lags": check_lags(values["lags"]),
            "head_of_offset": as_heads("head_of_offset", heads),
        }
        if not (heads or profile):
            raise ValueError(
                "head_of_offset must have a head for one offset at least, or there must be a profile"
            )
        return Circuit(
            **{
                **values,
                **lists,
                "profile": None if profile is None else Profile.from_dict(profile),
            }
        )


def check_told(values: Any, *lists: str) -> None:
    """Raise a ValueError unless a circuit's JSON holds what every circuit has, and these lists, of the right kinds."""
    kinds = {**ENTRIES, **dict.fromkeys(lists, (list, tuple))}
    check_entries(values, kinds, (*lists, "target", "third", "length", "evidence", "beta"))
    check_sizes(length=values["length"])
    for name, value in values.items():
        if ENTRIES.get(name) == NUMBER and not math.isfinite(value):
            raise ValueError(f"{name} must be finite; got {value}")
        if name in SWITCHES and not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false; got {value!r:.60}")


def as_heads(name: str, heads: Any) -> tuple[int, ...]:
    """Return a file's list of heads, or raise a ValueError."""
    if not isinstance(heads, list | tuple) or any(
        type(head) is not int or head < -1 for head in heads
    ):
        raise ValueError(f"{name} must be numbers of heads, -1 for none; got {heads!r:.60}")
    return tuple(heads)


def log_probabilities(
    task: MatrixTask, circuit: Choices, power: float = 1.0
) -> Float[Tensor, "state state"]:
    """Return log P to a power, with a finite number in place of log 0."""
    log_P = power * torch.where(task.P > 0, task.P.log(), circuit.log_zero)
    return (
        torch.where(task.P > 0, log_P, ZERO) if circuit.log_zero == ZERO else log_P
    )  # 0 to any power is 0


def normalised(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit, temper: float
) -> Float[Tensor, "batch time lag"]:
    """Return p-tilde at every position from max_lag on, and 0 before, where no head looks."""
    return normalised_probabilities(tokens, task, log_P=log_probabilities(task, circuit, temper))


def circuit_scores(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    """Return E at every position, right from `circuit.first_exact_position` on.

    The time it takes is proportional to positions x lags x period, or to their logarithm with a profile.
    """
    if circuit.looking:
        from sih.construction.looking import (
            looking_scores,
        )  # which is written in terms of this module

        return looking_scores(tokens, task, circuit)
    p = normalised(tokens, task, circuit, circuit.temper)
    if circuit.symmetric:
        p = (p - normalised(tokens, task, circuit, -circuit.temper)) / 2
    if circuit.profile is not None:
        return circuit.beta * _profile_sums(p, circuit.profile) + task.lag_prior.log().to(p.device)
    sums = strided_sums(p, len(circuit.head_of_offset))
    gathered = [
        sum(
            (shifted(sums, o) for o, h in enumerate(circuit.head_of_offset) if h == head),
            torch.zeros_like(p),
        )
        for head in range(circuit.heads)
    ]
    counts = circuit.counts(tokens.shape[1]).to(p.device)
    if circuit.third == "key":
        return _two_lag_scores(gathered[0], counts, circuit)
    if circuit.evidence == "sum":
        scores = circuit.beta * sum(gathered, torch.zeros_like(p))
    else:
        if circuit.sink:
            counts = counts.sum(dim=-1, keepdim=True).expand_as(counts)
        shares = [1.0] * circuit.heads if circuit.sink else circuit.shares()
        scores = torch.zeros_like(p)
        for head, total in enumerate(gathered):
            scores += circuit.beta * shares[head] * total / counts[:, head, None].clamp_min(1)
    return scores + task.lag_prior.log().to(p.device) if circuit.prior else scores


def circuit_weights(
    tokens: Tokens, task: Task, circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    """Return the attention that the third layer pays to the token each lag would copy, by the closed form.

    This is the fast way to use a construction: no weights are run.

    Args:
        tokens: the sequences.
        task: what they were drawn from.
        circuit: `model.circuit` of a constructed model.

    >>> import sih
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=16)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])
    >>> sih.circuit_weights(tokens, task, sih.construct(task, target="bayes").circuit)[0, -1]  # the posterior
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    check_task(task, Task)
    check_kind("circuit", circuit, Circuit, "a circuit, e.g. sih.construct(task).circuit")
    return torch.softmax(circuit_scores(check_states(tokens, task), task, circuit), dim=-1)


def strided_sums(
    p: Float[Tensor, "batch time lag"], stride: int
) -> Float[Tensor, "batch time lag"]:
    r"""Return $\sum_{t \ge 0} p_{n - t \cdot stride}$ at every n."""
    size, time, width = p.shape
    rows = math.ceil(time / stride)
    padded = torch.zeros((size, rows * stride, width), dtype=p.dtype, device=p.device)
    padded[:, :time] = p
    return (
        padded.view(size, rows, stride, width)
        .cumsum(dim=1)
        .reshape(size, rows * stride, width)[:, :time]
    )


def shifted(values: Float[Tensor, "batch time lag"], by: int) -> Float[Tensor, "batch time lag"]:
    """Return values[i - by] at every i, 0 where that is before the start."""
    out = torch.zeros_like(values)
    if by < values.shape[1]:
        out[:, by:] = values[:, : values.shape[1] - by]
    return out


def _two_lag_scores(
    total: Float[Tensor, "batch time lag"], counts: Int[Tensor, "time head"], circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    r"""Return $\frac{\beta}{n(j)} \sum_{o \in C} (\tilde p_{j-o,k} - \tilde p_{j-o,k'})$ at the key j = i - k + 1."""
    at_key = circuit.beta * (total - total.flip(-1)) / counts.clamp_min(1)
    return torch.cat(
        [shifted(at_key[..., j : j + 1], lag - 1) for j, lag in enumerate(circuit.lags)], dim=-1
    )


def _profile_sums(
    p: Float[Tensor, "batch time lag"], profile: Profile
) -> Float[Tensor, "batch time lag"]:
    r"""Return $\sum_o J F_o J\,p_{i-o}$ up to what lags share: the sum of p, and deviations by fast convolution."""
    time = p.shape[1]
    if time > profile.length:
        raise ValueError(f"the circuit's weights are for {profile.length} tokens; got {time}")
    filters = torch.fft.rfft(profile.deviations.to(p.device), n=2 * time, dim=0)
    moved = torch.einsum(
        "fkl,bfl->bfk", filters, torch.fft.rfft(p, n=2 * time, dim=1).to(filters.dtype)
    )
    off: Tensor = torch.fft.irfft(moved, n=2 * time, dim=1)[:, :time]
    return p.cumsum(dim=1) + off


def one_residue_each(head_of_offset: Sequence[int]) -> bool:
    """Tell whether every head takes the offsets of one residue modulo the period, as for contiguous lags."""
    taken = [head for head in head_of_offset if head >= 0]
    return len(taken) == len(set(taken))
