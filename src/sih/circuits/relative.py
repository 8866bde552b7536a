r"""Circuits with relative positions: one head in every layer, any lags, any length.

Heads know the offset i - j of a key, in scores and in values
(`models/relative/disentangled_relative.py`). Rows count from the start token, row 0;
token i of the paper is in row i, and $\hat k$ is the largest lag.

    layer 1    row $i > \hat k$ pays $\tilde p_{i,k}$ to offset k; so `1.1/offset` holds $\tilde p_{i,k}$ at index k.
               Row $i \le \hat k$ attends to the start token.
    layer 2    row i averages over the rows $n > \hat k$: index k of `2.1/1.1/offset` is $z_{i,k}$. The start token
               has the weight of c transitions (c = 0: Prop. 1) and holds 0 at every lag.
    layer 3    row $i \ge \hat k$ pays $w_{i,k} \propto \pi_k \exp(\beta z_{i,k})$ to offset k - 1, which lag k copies.
               Row $i < \hat k$ attends to the start token.
    readout    $\sum_k w_{i,k} P_{s_{i-k+1}, \cdot}$, and the stationary distribution for the start token

The address of $\tilde p_{n,k}$ is the lag, not the parent's position. So transitions of
one lag gather at one address wherever they were made, and nothing mixes.

**Proof.** Blocks are written in `write`, with $\lambda$ the strength of the masks and ⊥
the start token.

*Layer 1.* Row $i > \hat k$: the keys at the lags are tokens and score $\gamma \log P$.
Other tokens score at most $-2\lambda$, and ⊥, at an offset above $\hat k$,
$4\lambda - 8\lambda$. Row $i \le \hat k$: ⊥ is at an offset up to $\hat k$ and scores
$2\lambda$ at least, all others 0 at most.

*Layer 2.* A row $n > \hat k$ has 0 at ⊥ in `1.1/token` and scores 0; an early row has 1
there and scores $-2\lambda$. ⊥ saw itself at offset 0, and so has 0 at every lag. It
scores $-\lambda$, or $\log c$. An early row sees early rows alone, and ⊥ is ahead of
them.

*Layer 3.* Row $i \ge \hat k$: offset k - 1 scores $\beta z_{i,k} + \log \pi_k$, other
tokens at most $-2\lambda$, ⊥ at most $-4\lambda$. Row $i < \hat k$: $z_i = 0$, so that
tokens score 0 at most and ⊥ at least $2\lambda + \log \pi_k$.

**Sums.** With $\beta = c K / \gamma$ the score is $c / (n + c)$ times the
log-likelihoods that heads of exponents $\pm\gamma$ store (`tempering.py`). A factor
$\varphi$ common to all lags moves a weight by at most $\kappa(m) |\log \varphi|$,
whatever the evidence, with m the least prior. c costs no digits: what is stored is
small, not inexact.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sih.base.errors import FieldError
from sih.base.record import AtLeast
from sih.circuits import steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.log_matrix import log_matrix
from sih.circuits.mask_strength import LEAK, first_layer_gap
from sih.circuits.positions import at_candidates, at_offsets
from sih.circuits.relative_standard import offset_scores, standard_weights
from sih.circuits.rounding import UNITS, early_rounding, finite, weight_error
from sih.circuits.strengths import OrInfinite, Strength
from sih.circuits.tempering import LOG_ZERO, best_tempering, column_spread, truncation_error
from sih.models.base import Model
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.models.relative.offset_blocks import OffsetBlocks
from sih.predictors.evidence import lag_posterior, mixture
from sih.task import Task

RelativeT = TypeVar("RelativeT", bound="RelativeCircuit")
Form = Literal["disentangled", "standard"]

STRENGTH = {torch.float64: 100.0, torch.float32: 50.0}
"""Default strength of masks. A mask multiplies a weight by the exponential of minus
twice this."""
GENTLE_STRENGTH = {torch.float64: 25.0, torch.float32: 16.0}
"""Default strength beside small exponents, which lose digits to larger numbers."""
HEAVY = {torch.float64: 2.0**50, torch.float32: 2.0**30}
"""Weight of the start token, in transitions, where evidence is summed."""
GENTLER = {torch.float64: 6.0, torch.float32: 3.0}
"""Default exponent, in units of the one of least certified error. The actual error of a
power is far below its bound and that of rounding is near it, so a larger exponent errs
less."""
GENTLER_ALONE = 100.0
"""The same default with one first-layer head."""
LONGEST = 2.0**31
"""The number of keys up to which masks are strong enough."""


@dataclass(frozen=True)
class RelativePaperOptions(CircuitOptions):
    """Options of Prop. 1 with relative positions."""

    form: Form = "disentangled"
    """Whether weights are blocks by name (disentangled), or a standard transformer with
    one vector per offset (standard)."""
    lam: Strength | None = None
    """Strength of the masks. By default 100, in float32 50, or more if the least entry
    of P needs it."""
    beta: OrInfinite = 100.0
    """Inverse temperature of the third layer; inf for the limit."""
    temper: Strength = 1.0
    """Exponent on the probabilities in the first layer."""


@dataclass(frozen=True)
class RelativeBayesOptions(CircuitOptions):
    """Options of the Bayes-optimal circuit with relative positions."""

    form: Form = "disentangled"
    """Whether weights are blocks by name (disentangled), or a standard transformer with
    one vector per offset (standard)."""
    lam: Strength | None = None
    """Strength of the masks. By default 25, in float32 18, or more if the prior needs
    it."""
    temper: Strength | None = None
    """Exponent on the probabilities in the first layer. By default a multiple of the
    one with the least certified error, the same at any length. It determines the
    inverse temperature."""
    symmetric: bool = True
    """Whether layer 1 has two heads of opposite exponents. This costs a head and gains
    2 to 4 digits."""


@dataclass(frozen=True, kw_only=True)
class RelativeCircuit(Circuit):
    """A circuit with relative positions, with all its numbers. They do not depend on
    the length.
    """

    bounds_hold_leaks: ClassVar[bool] = True
    only_heads: ClassVar[str] = "relative positions: one for any set of lags, at any length"

    length: int | None = field(init=False, default=None)  # type: ignore[assignment]
    form: Form = "disentangled"
    start_weight: Annotated[float, AtLeast(0)] = 0.0
    """Weight c of the start token in layer 2, in transitions."""

    @classmethod
    @abstractmethod
    def chosen(cls: type[RelativeT], task: Task, options: Any, dtype: torch.dtype) -> RelativeT:
        """Return the circuit with all numbers chosen except its masks'."""

    @classmethod
    def resolve(
        cls: type[RelativeT],
        task: Task,
        options: RelativePaperOptions | RelativeBayesOptions,
        dtype: torch.dtype,
    ) -> RelativeT:
        circuit = cls.chosen(task, options, dtype)
        if options.lam is None:
            needed = circuit.least_strength(task)
            usual = GENTLE_STRENGTH if circuit.start_weight else STRENGTH
            return replace(circuit, lam=max(usual[dtype], float(math.ceil(needed))))
        asked = replace(circuit, lam=options.lam)
        if max(asked.leaks(task)) > LEAK:
            says = f"in the worst case more than {LEAK:g} of the attention would leave the allowed keys"
            least = math.ceil(circuit.least_strength(task))
            raise FieldError("lam", f"lam={options.lam:g} is too small: {says}; use lam >= {least}")
        return asked

    def build(self, task: Task, readout: str, dtype: torch.dtype) -> Model:
        if self.form == "standard":
            return standard_weights(self, task, readout, dtype)
        words: dict[str, Any] = {"readout": readout, "dtype": dtype}
        model = DisentangledRelativeTransformer(
            task.num_states, self.reach, self.model_heads, temperature=1.0, init="zeros", **words
        )
        self.write(model, task, readout)
        return model

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        start = task.num_states
        logs, by_offset = self.first_scores(task)
        for head in self.exponents:
            blocks.block(head, "token", "token")[:start, :start] = logs[head].T
            blocks.block(head, "token", "token")[:, start] = 4 * self.lam
            blocks.block(head, "token", "offset")[:] = by_offset
        blocks.block("2.1", "token", "1.1/token")[:, start] = -2 * self.lam
        blocks.block("2.1", "token", "token")[:, start] = self.start_score
        for head, share in self.shares.items():
            for lag in self.lags:
                read = blocks.block("3.1", f"2.1/{head}/offset", "offset")
                read[lag, lag - 1] = share * self.beta
        blocks.block("3.1", "token", "token")[:, start] = 4 * self.lam
        blocks.block("3.1", "token", "offset")[:] = self.last_scores(task)
        copied = blocks.readout_block("3.1/token")
        copied[:, :start], copied[:, start] = self.laws(task, readout)

    def written(self, task: Task) -> OffsetBlocks:
        """Return the weights as blocks alone, without a model; the output is a probability."""
        blocks = OffsetBlocks(task.num_states, self.reach, self.model_heads)
        self.write(blocks, task, "probability")
        return blocks

    def first_scores(
        self, task: Task
    ) -> tuple[dict[str, Float[Tensor, "state state"]], Float[Tensor, " offset"]]:
        """Return each first-layer head's scores of transitions, and of offsets."""
        by_offset = torch.full((self.reach + 1,), -2 * self.lam, dtype=torch.float64)
        by_offset[list(self.lags)] = 0.0
        by_offset[self.max_lag + 1 :] = -8 * self.lam
        powers = self.exponents.items()
        return {h: log_matrix(task.P, power, self.log_zero) for h, power in powers}, by_offset

    @property
    def start_score(self) -> float:
        """Return the score of the start token's key in layer 2, before the mask
        subtracts 2 lam.
        """
        c = self.start_weight
        return 2 * self.lam + math.log(c) if c else self.lam

    def last_scores(self, task: Task) -> Float[Tensor, " offset"]:
        """Return the third layer's scores of offsets: a lag's candidate has its log
        prior.
        """
        scores = torch.full((self.reach + 1,), -2 * self.lam, dtype=torch.float64)
        scores[self.max_lag :] = -8 * self.lam
        scores[[lag - 1 for lag in self.lags]] = self.log_prior(task)
        return scores

    def log_prior(self, task: Task) -> Float[Tensor, " lag"]:
        """Return the log prior of each lag if the circuit contains it, otherwise 0."""
        prior = task.lag_prior.double()
        return prior.log() if self.with_prior else torch.zeros_like(prior)

    def laws(
        self, task: Task, readout: str
    ) -> tuple[Float[Tensor, "state state"], Float[Tensor, " state"]]:
        """Return the distributions that follow each copied token, in columns, and the
        start token.
        """
        if readout == "probability":
            return task.P.T, task.stationary
        log_pi = torch.where(task.stationary > 0, task.stationary.log(), self.log_zero)
        return log_matrix(task.P, log_zero=self.log_zero).T, log_pi

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        return torch.softmax(self.scores(tokens, task) + self.log_prior(task), dim=-1)

    def scores(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        r"""Return $\beta z_{i,k}$ minus its mean over lags, which keeps digits."""
        found = steps.evidence(tokens, task, self)
        total = (found - found.mean(dim=-1, keepdim=True)).cumsum(dim=1)
        n = (torch.arange(1, tokens.shape[1] + 1) - self.max_lag).clamp_min(0)[:, None]
        return self.beta * total / (n + self.start_weight).clamp_min(1)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        rows, early = self._rows(tokens)
        middle = self._middle(rows.numel())
        for head, power in self.exponents.items():
            p = steps.normalised(tokens, task, self, power)
            yield Expected(f"{head}/attention", rows, _started(at_offsets(p, self.lags), early))
        size = (len(tokens), -1, -1)
        yield Expected("2.1/attention", rows, middle.expand(*size))
        if self.form == "disentangled":
            for head, power in self.exponents.items():
                p = steps.normalised(tokens, task, self, power)
                stored = p.new_zeros(len(p), rows.numel(), self.reach + 1)
                stored[:, 1:, list(self.lags)] = p
                index = early.nonzero().flatten()
                stored[:, index] = torch.eye(self.reach + 1, dtype=p.dtype)[index]
                yield Expected(f"{head}/offset", rows, stored)
                yield Expected(f"2.1/{head}/offset", rows, middle @ stored)
        weights = self.weights(tokens, task)
        before = torch.arange(rows.numel()) < self.max_lag
        attention = _started(at_candidates(weights, self.lags), before)
        yield Expected("3.1/attention", rows, attention)
        every = torch.ones(tokens.shape[1], dtype=torch.bool)
        yield Expected("output", every, mixture(weights, tokens, task))

    def _rows(
        self, tokens: Int[Tensor, "batch time"]
    ) -> tuple[Bool[Tensor, " row"], Bool[Tensor, " row"]]:
        """Return the rows of tokens, and the rows of tokens without a transition."""
        row = torch.arange(tokens.shape[1] + 1)
        return row >= 1, row <= self.max_lag

    def _middle(self, rows: int) -> Float[Tensor, "row key"]:
        """Return the second layer's attention, which is the same for all sequences."""
        row = torch.arange(rows)
        weight = (row > self.max_lag).double().expand(rows, -1).tril()
        weight[:, 0] = torch.where(row > self.max_lag, self.start_weight, 1.0)
        return weight / weight.sum(dim=-1, keepdim=True)

    def exact(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        posterior = self.posterior(tokens, task)
        if posterior is not None:
            row = torch.arange(tokens.shape[1] + 1)
            attention = _started(at_candidates(posterior, self.lags), row < self.max_lag)
            yield Expected("3.1/attention", row >= self.max_lag, attention)

    def leaks(self, task: Task) -> tuple[float, float]:
        """Return the largest leaks of attention through masks, before the last layer
        and in it.

        *Layers 1 and 2*: the allowed keys have at least the least entry of P, others 1
        each. Where the start token weighs nothing it has $e^{-\\lambda}$ beside a
        transition's 1, and early rows as much beside its own. *Layer 3*: some lag's key
        scores its log prior at least.
        """
        length = task.length
        early = math.log(length) + first_layer_gap(self, task) - 2 * self.lam
        own = math.log(length) - self.log_prior(task).min().item() - 2 * self.lam
        middle = math.exp(math.log(self.max_lag) - self.lam) if not self.start_weight else 0.0
        return middle + math.exp(min(early, 0.0)), math.exp(min(own, 0.0))

    def least_strength(self, task: Task) -> float:
        """Return the mask strength with leaks of at most `LEAK` at any length."""
        log_prior = self.log_prior(task).min().item()
        gap = max(first_layer_gap(self, task), -log_prior) + math.log(LONGEST)
        return max((gap - math.log(LEAK / 2)) / 2, math.log(2 * self.max_lag / LEAK))

    def rounding(self, task: Task, dtype: torch.dtype) -> float:
        """Return a bound on the change of two lags' log-odds by rounding."""
        n, unit = task.length - self.max_lag, torch.finfo(dtype).eps / 2
        units = UNITS + n / 2  # those of a sum of n terms, which may all be rounded alike
        return unit * (units * self.evidence_size(n) + UNITS * 8 * self.lam)

    def evidence_size(self, transitions: int) -> float:
        r"""Return the size of the candidates' scores $\beta z$, including the part
        common to all lags.
        """
        if self.start_weight:
            return self.beta / len(self.lags) * transitions / (transitions + self.start_weight)
        return self.beta

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        first, last = self.leaks(task)
        size = self.evidence_size(task.length - self.max_lag)
        leaked = last + weight_error(4 * first * size)
        early = early_rounding(8 * self.lam, dtype) + first
        unit = torch.finfo(dtype).eps / 2
        rounding = weight_error(self.rounding(task, dtype)) + 64 * unit
        off = self.distance(task, dtype)
        posterior = None if off is None else off + rounding + leaked
        return Bounds(early, self.times * (rounding + leaked), posterior)

    def distance(self, task: Task, dtype: torch.dtype) -> float | None:
        """Return the certified distance of a weight from the posterior, without
        rounding.
        """
        return None

    def strength(self) -> float:
        return self.beta

    def check_fit(self, task: Task) -> None:
        if task.lags != self.lags:
            raise ValueError(
                f"circuit and task do not fit: the circuit is for lags {self.lags}, "
                f"at any length, and the task has lags {task.lags}"
            )

    def check_model(self, model: Model, task: Task) -> None:
        kinds = {"disentangled": "relative-disentangled", "standard": "relative"}
        found = (model.Shape.kind, getattr(model.config, "reach", None), model.first)
        wanted = (kinds[self.form], self.reach, 1)
        if found != wanted:
            raise ValueError(
                f"model and circuit do not fit: the model is of the kind {found[0]!r} with reach {found[1]} and "
                f"{found[2]} start tokens; the circuit, of the form {self.form!r}, has {wanted[0]!r}, "
                f"{wanted[1]} and 1"
            )
        lags = self.lags_of(model)
        if lags not in (None, self.lags):
            raise ValueError(
                f"model and circuit do not fit: the weights are those of other lags, {lags}; "
                f"circuit and task have {self.lags}"
            )
        P = self.matrix_of(model)
        is_matrix = bool((P >= 0).all()) and torch.allclose(
            P.sum(dim=-1), torch.ones(len(P)).double(), atol=1e-5
        )
        if is_matrix and not torch.allclose(P, task.P, rtol=0, atol=1e-5):
            far = (P - task.P).abs().max().item()
            raise ValueError(
                "model and task do not fit: the weights are those of another matrix P, "
                f"up to {far:.2g} from the task's"
            )

    def lags_of(self, model: Model) -> tuple[int, ...] | None:
        """Return the lags that weights were written for, None where layers 1 and 3 disagree.

        A single wrong number changes one of the two layers.
        """
        if isinstance(model, DisentangledRelativeTransformer):
            allowed = model.block("1.1", "token", "offset")[0]
            read = model.block("3.1", "2.1/1.1/offset", "offset").any(dim=1)
            answered = read.nonzero().flatten().tolist()
        else:
            allowed, selected = offset_scores(model)
            answered = (selected.any(dim=1).nonzero().flatten() + 1).tolist()
        lags = (allowed > -self.lam).nonzero().flatten().tolist()
        return tuple(lags) if lags == answered else None

    def matrix_of(self, model: Model) -> Float[Tensor, "state state"]:
        """Return the distributions that a model reads out of each copied token."""
        readout: Tensor = model.readout  # type: ignore[assignment]
        copied = readout.detach()[:, model.columns("3.1/token", layers=3)]
        states = model.config.num_states
        columns = copied[:, -states - 1 : -1].double()
        return columns.T if model.config.readout == "probability" else columns.T.exp()

    @property
    def reach(self) -> int:
        """Return the first offset that layer 1 need not distinguish from larger ones."""
        return self.max_lag + 1

    @property
    def model_heads(self) -> tuple[int, int, int]:
        return len(self.exponents), 1, 1

    @property
    def first_exact_position(self) -> int:
        return self.max_lag - 1

    @classmethod
    def kept(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if "length" in values:
            says = (
                "a circuit with relative positions has no length, and its notes no entry 'length'"
            )
            raise FieldError("circuit.length", f"{says}; got {values['length']!r:.40}")
        return super().kept(values)

    def describe(self) -> Iterator[str]:
        told = "a standard transformer" if self.form == "standard" else "disentangled"
        first = "two heads in layer 1, one" if self.symmetric else "one head"
        which = "layers 2 and 3" if self.symmetric else "every layer"
        heads = f"relative positions, {told}: {first} in {which}, offsets up to {self.reach}, any length"
        return self.lines(heads, evidence="sum" if self.start_weight else "mean")

    def _pictures(self) -> Iterator[str]:
        yield from ()


@dataclass(frozen=True, kw_only=True)
class RelativePaperCircuit(RelativeCircuit):
    """The circuit of Prop. 1 with relative positions: heads (1, 1, 1)."""

    target: ClassVar[str] = "paper"
    Options: ClassVar[type[CircuitOptions]] = RelativePaperOptions

    @classmethod
    def chosen(
        cls, task: Task, options: RelativePaperOptions, dtype: torch.dtype
    ) -> RelativePaperCircuit:
        return cls(
            lags=task.lags,
            beta=finite(options.beta, dtype),
            temper=options.temper,
            log_zero=LOG_ZERO[dtype],
            form=options.form,
        )


@dataclass(frozen=True, kw_only=True)
class RelativeBayesCircuit(RelativeCircuit):
    """The Bayes-optimal circuit with relative positions."""

    target: ClassVar[str] = "bayes"
    Options: ClassVar[type[CircuitOptions]] = RelativeBayesOptions
    with_prior: ClassVar[bool] = True

    @classmethod
    def chosen(
        cls, task: Task, options: RelativeBayesOptions, dtype: torch.dtype
    ) -> RelativeBayesCircuit:
        one = task.with_length(
            task.max_lag + 1
        )  # for which the best exponent is that of any length
        best = best_tempering(one, 1.0, dtype, symmetric=options.symmetric).temper
        gentler = GENTLER[dtype] if options.symmetric else GENTLER_ALONE
        if options.form == "standard" and options.symmetric:
            gentler = GENTLER[torch.float32]  # both write to one coordinate, and less is rounded
        temper = gentler * best if options.temper is None else options.temper
        return cls(
            lags=task.lags,
            beta=HEAVY[dtype] * len(task.lags) / temper,
            temper=temper,
            log_zero=LOG_ZERO[dtype],
            symmetric=options.symmetric,
            start_weight=HEAVY[dtype],
            form=options.form,
        )

    def posterior(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        return lag_posterior(tokens, task)

    def distance(self, task: Task, dtype: torch.dtype) -> float:
        r"""Return $\tanh(\delta/4) + \kappa \log(1 + n/c)$, n the number of
        transitions.
        """
        n, R = task.length - self.max_lag, column_spread(task, dtype)
        truncation = n * truncation_error(self.temper, R, symmetric=self.symmetric)
        shrunk = math.log1p(n / self.start_weight)
        return weight_error(truncation) + kappa(task.lag_prior.min().item()) * shrunk


def kappa(least: float) -> float:
    r"""Return $\max_w w (1 - w) \log \frac{w (1 - m)}{m (1 - w)}$ for the least prior
    m.

    It bounds the change of a posterior per unit of the logarithm of a factor on its
    evidence.

    >>> [round(kappa(1 / lags), 4) for lags in (2, 3, 4, 5)]
    [0.2239, 0.3368, 0.4127, 0.4699]
    """
    if least >= 1:
        return 0.0
    w = torch.linspace(0, 1, 100_001, dtype=torch.float64)[1:-1]
    return (w * (1 - w) * (w * (1 - least) / (least * (1 - w))).log()).max().item()


def _started(
    attention: Float[Tensor, "batch time time"], early: Bool[Tensor, " row"]
) -> Float[Tensor, "batch row row"]:
    """Return attention with a start token before all others, to which early rows attend
    fully.
    """
    padded = nn.functional.pad(attention, (1, 0, 1, 0))
    padded[:, early] = 0.0
    padded[:, early, 0] = 1.0
    return padded
