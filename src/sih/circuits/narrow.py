r"""The Bayes-optimal circuit as a standard transformer, with a width independent of the
length.

Positions enter through `Feature`s (`position_forms.py`): 1, x, x^2, waves, two flags
and one function for each sink.

- **Masks** of layers 1 and 3 are 0 at the lags z and at most -D elsewhere. With M =
  span + 1, m the middle of the lags and $Q = 2^R M$: $-a(z - m)^2 + \sum_{r=1}^R A_r
  \cos(2\pi(z - m)/(2^r M)) + \psi(z \bmod M)$, where $\psi$ makes it 0 at the lags, and
  -D at what lies between. *Proof.* Let y = z + sM, z between the extreme lags, so that
  $|z - m| \le (M-1)/2$. No term is larger at y than at z, which is the point of its
  progression nearest to m and to a crest. If s is $2^{r-1}$ times an odd number, wave r
  is turned by half and falls by $2 A_r \cos(2\pi(z-m)/(2^r M)) \ge D$ for
  $A_1 = D / (2 \sin(\pi/2M))$, $A_r = D/\sqrt2$. If s is a multiple of $2^R$, the
  parabola falls by at least $a Q(Q - M + 1) = D$. One more wave makes the parabola four
  times flatter; scores are of size $D(R + T^2/Q^2)$.
- **Layer 1** stores, instead of $\tilde p_{n,k}$ at index n - k, the mean of a few
  features f: $\sum_k \tilde p_{n,k} f(n - k)$. Its heads of exponents $\pm\gamma$ write
  to the same coordinates with opposite signs: half the difference is
  $(\gamma/K) \sum_k q_{n,k} f(n-k)$.
- **Layer 2** scores offsets by the logarithms of their weights, which are periodic:
  those of a head's colour, or $1 \pm \eta$. They score the sink too, which its function
  of the position takes off again. The values of head h are what layer 3 will multiply
  with the key's features.
- **Layer 3** reads index m at key j by a function of j - 1 - m: the colour's indicator
  (periodic), or, where lags mix, an alternation and a parabola, $-c(j-1-m)^2$, of which
  only $2cjm$ is left: the rest is common to all keys, or meets entries of sum 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.circuits.any_circuit import Bounds, Expected
from sih.circuits.bayes import BayesCircuit, BayesOptions
from sih.circuits.log_matrix import log_matrix
from sih.circuits.position_forms import ONE, Feature, Form, X, column
from sih.circuits.rounding import early_rounding, weight_error
from sih.circuits.tempering import column_spread
from sih.heads.least import least_heads
from sih.heads.mixing import ETA, parabola_and_waves, progression
from sih.models.standard.transformer import Transformer
from sih.task import Task

NarrowT = TypeVar("NarrowT", bound="NarrowBayesCircuit")

FORBID = 64.0
"""How much lower a masked score is, at least: e^-64 of a weight is negligible."""
LEVELS = 5
"""Waves of a mask (R): widths are the same for any length, and Q = 32 M."""
Dimension = tuple[dict[int, float], int]
"""The coefficients of a query by coordinate, and the coordinate of the key."""
FIRST, EARLY = ("first", 0.0), ("early", 0.0)


@dataclass(frozen=True, kw_only=True)
class NarrowBayesCircuit(BayesCircuit):
    """The Bayes-optimal circuit as a narrow standard transformer, with all its numbers.

    Heads keep lags apart, or have weights that alternate. `write` writes the same
    circuit by blocks, which defines its edges.
    """

    @classmethod
    def resolve(
        cls: type[NarrowT], task: Task, options: BayesOptions, dtype: torch.dtype
    ) -> NarrowT:
        if options.reading == "both" or options.profile is not None or not options.symmetric:
            raise FieldError(
                "kind", "kind='standard' needs symmetric=True, reading='query' and no profile"
            )
        circuit = super().resolve(task, options, dtype)
        if circuit.profile is not None and circuit.heads > 1 and progression(task.lags) != (1, 3):
            apart = replace(options, heads=least_heads(task.lags).heads)
            circuit = super().resolve(task, apart, dtype)
        unused = -1 in circuit.head_of_offset
        if unused or options.heads not in (None, circuit.heads):
            known = least_heads(task.lags).heads if unused else circuit.heads
            raise FieldError(
                "heads",
                f"as a standard transformer, lags {task.lags} take heads={known}; "
                f"got heads={options.heads}",
            )
        return circuit

    def build(self, task: Task, readout: str, dtype: torch.dtype) -> Transformer:
        return narrow_transformer(task, self, readout, dtype)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        """Yield attention and output only: no head stores attention at indices."""
        for each in super().expected(tokens, task):
            if each.site == "output" or each.site.endswith("/attention"):
                yield each

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        """Return the bounds, for scores that are sums of larger terms.

        Beside the mask, one transition's evidence may lose more digits than the
        circuit's own bound allows for all of it, if transitions are few.
        """
        own = super().bounds(task, dtype)
        lost = early_rounding(early_size(self, 0), dtype) * len(self.lags) / self.temper
        more = max(0.0, weight_error(lost) - own.last)
        early = early_rounding(early_size(self, self.length), dtype)
        posterior = None if own.posterior is None else own.posterior + more
        return Bounds(early, own.last + more, posterior)


def narrow_transformer(
    task: Task, circuit: NarrowBayesCircuit, readout: str, dtype: torch.dtype
) -> Transformer:
    """Return the circuit as a standard transformer of small width."""
    first, second = _lag_mask(circuit, first_depth(task, circuit), 0, {}), _second_layer(circuit)
    reads = _reads(circuit)
    prior = {lag: math.log(p) for lag, p in zip(circuit.lags, task.lag_prior.tolist(), strict=True)}
    third = _lag_mask(circuit, third_depth(task, circuit, dtype), 1, prior)
    columns = _columns(circuit, [first, *second, *reads, third])
    for head, (form, weights) in enumerate(
        zip(second, circuit.second_layer.attention(), strict=True)
    ):
        columns["sink", float(head)] = _sink(
            form.values(columns)[:, 0], weights[:, 0] * circuit.second_layer.sums_to[head]
        )
        form.add(("sink", float(head)), FIRST, 1.0)
    carried = sorted({b for form in reads for _, b in form.terms})
    read = sorted({a for form in reads for a, _ in form.terms})
    states = task.num_states
    blocks = (
        [("token", s) for s in range(states)]
        + [("position", f) for f in columns]
        + [("1", f) for f in carried]
        + [("2", f) for f in read]
        + [("3", s) for s in range(states)]
    )
    at: dict[tuple[str, object], int] = {name: n for n, name in enumerate(blocks)}

    def dimensions(form: Form) -> list[Dimension]:
        keys = dict.fromkeys(b for _, b in form.terms)
        queries = [
            {at["position", a]: value for (a, b), value in form.terms.items() if b == key}
            for key in keys
        ]
        return list(zip(queries, (at["position", key] for key in keys), strict=True))

    layers: list[list[list[Dimension]]] = [[], [], []]
    for power in circuit.exponents.values():
        logs = log_matrix(task.P, power, circuit.log_zero)
        tokens = [
            ({at["token", t]: logs[s, t].item() for t in range(states)}, at["token", s])
            for s in range(states)
        ]
        layers[0].append([*dimensions(first), *tokens])
    layers[1] = [dimensions(form) for form in second]
    layers[2] = [[*dimensions(third), *(({at["2", f]: 1.0}, at["position", f]) for f in read)]]
    model = Transformer(
        states,
        task.length,
        dim=len(blocks),
        qk_dim=max(len(head) for layer in layers for head in layer),
        heads=circuit.model_heads,
        temperature=1.0,
        readout=readout,
        dtype=dtype,
        init="zeros",
    ).requires_grad_(False)
    for layer, heads in zip(model.each_layer(), layers, strict=True):
        for head, dims in enumerate(heads):
            for n, (query, key) in enumerate(dims):
                layer.K[head, key, n] = 1.0
                for coordinate, value in query.items():
                    layer.Q[head, coordinate, n] = value
    one, two, three = model.each_layer()
    for feature in carried:
        for head, sign in enumerate((0.5, -0.5)):
            one.V[head, at["position", feature], at["1", feature]] = sign
    for head, (form, total) in enumerate(zip(reads, circuit.second_layer.sums_to, strict=True)):
        for (a, b), value in form.terms.items():
            two.V[head, at["1", b], at["2", a]] = circuit.beta * total * value
    P = task.P if readout == "probability" else log_matrix(task.P, log_zero=circuit.log_zero)
    for s in range(states):
        model.token[s, at["token", s]] = 1.0
        three.V[0, at["token", s], at["3", s]] = 1.0
        model.readout[:, at["3", s]] = P[s].to(dtype)
    for feature, values in columns.items():
        model.position[:, at["position", feature]] = values.to(dtype)
    return model


def _columns(
    circuit: NarrowBayesCircuit, forms: list[Form]
) -> dict[Feature, Float[Tensor, " length"]]:
    length = circuit.length
    x = torch.arange(length)
    flags: dict[Feature, Tensor] = {
        FIRST: (x == 0).to(torch.float64),
        EARLY: (x < circuit.max_lag).to(torch.float64),
    }
    used = sorted({f for form in forms for pair in form.terms for f in pair} - flags.keys())
    return {**{f: column(f, length) for f in used}, **flags}


def _lag_mask(
    circuit: NarrowBayesCircuit, depth: float, shift: int, bonus: dict[int, float]
) -> Form:
    """Return the mask of z = a - b + shift with this depth D, and a bonus at each lag."""
    lags = circuit.lags
    period, middle = lags[-1] - lags[0] + 1, (lags[0] + lags[-1]) / 2
    long = period << LEVELS
    steep = depth / (long * (long - period + 1))
    waves = {Fraction(1, period << r): depth / math.sqrt(2) for r in range(2, LEVELS + 1)}
    waves[Fraction(1, 2 * period)] = depth / (2 * math.sin(math.pi / (2 * period)))
    form = Form()
    form.parabola(steep, shift - middle)
    for turn, amplitude in waves.items():
        form.wave(turn, amplitude, 2 * math.pi * float(turn) * (shift - middle))
    values = [0.0] * period
    for z in range(lags[0], lags[-1] + 1):
        crests = sum(
            A * math.cos(2 * math.pi * float(turn) * (z - middle)) for turn, A in waves.items()
        )
        values[z % period] = (
            steep * (z - middle) ** 2 - crests + (bonus.get(z, 0.0) if z in lags else -depth)
        )
    form.periodic(values, shift)
    return form


def _second_layer(circuit: NarrowBayesCircuit) -> list[Form]:
    """Return each head's scores: logarithms of its weights, with the first tokens
    masked.
    """
    forms = [Form() for _ in range(circuit.heads)]
    if circuit.profile is None:
        for head, form in enumerate(forms):
            form.periodic([0.0 if c == head else -FORBID for c in circuit.head_of_offset], 0)
    else:
        for form in forms[1:]:
            form.periodic([math.log1p(ETA), math.log1p(-ETA)], 0)
    for form in forms:
        form.add(ONE, EARLY, -2 * FORBID)
    return forms


def _reads(circuit: NarrowBayesCircuit) -> list[Form]:
    """Return the reads of each head, a form in the key's position and the index."""
    forms = [Form() for _ in range(circuit.heads)]
    if circuit.profile is None:
        for head, form in enumerate(forms):
            form.periodic([float(c == head) for c in circuit.head_of_offset], -1)
            form.terms.pop((ONE, ONE), None)  # entries of sum 0
        return forms
    step, count = progression(circuit.lags)
    c, waves = parabola_and_waves(count)
    forms[0].add(X, X, 2 * c / step**2)
    for form in forms[1:]:
        for where, sign in ((form, 1), (forms[0], -1)):
            where.wave(Fraction(1, 2), sign * waves[math.pi] / ETA, -math.pi)
    return forms


def _sink(
    scored: Float[Tensor, " query"], wanted: Float[Tensor, " query"]
) -> Float[Tensor, " query"]:
    """Return the difference between the desired log weight of the sink and its score."""
    return torch.where(wanted > 0, wanted.clamp_min(1e-300).log(), -FORBID) - scored


def first_depth(task: Task, circuit: NarrowBayesCircuit) -> float:
    """Return the depth of the first layer's mask: no token can compensate for it."""
    logs = log_matrix(task.P, circuit.temper, circuit.log_zero)
    return FORBID + (logs.max() - logs.min()).item()


def early_size(circuit: NarrowBayesCircuit, length: int) -> float:
    """Return the size of terms in the first two layers' scores, at this length."""
    period = circuit.lags[-1] - circuit.lags[0] + 1
    return 2 * FORBID * (LEVELS + period + (length / (period << LEVELS)) ** 2)


def third_depth(task: Task, circuit: NarrowBayesCircuit, dtype: torch.dtype) -> float:
    r"""Return the depth of the third layer's mask: no evidence can compensate for it.

    The evidence of a transition has $\sum_k |q_k| \le KR/2$, R its spread. The reads of
    keys z and z' differ by at most 1 if nothing mixes, otherwise by
    $2\sum r + c\,span\,|z - z'|$. With Q for |z - z'| the mask wins up to there; from
    there on it falls with the square.
    """
    lags = circuit.lags
    spread = column_spread(task, dtype)
    evidence = (
        (circuit.length - lags[-1])
        * len(lags)
        / 2
        * spread
        * math.exp(min(circuit.temper * spread, 1.0))
    )
    differ, span = 1.0, lags[-1] - lags[0]
    if circuit.profile is not None:
        step, count = progression(lags)
        c, waves = parabola_and_waves(count)
        differ = 2 * sum(waves.values()) + c / step**2 * span * ((span + 1) << LEVELS)
    prior = -task.lag_prior.log().min().item()
    return FORBID + prior + evidence * differ
