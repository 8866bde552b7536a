"""`sih.diagnose`: properties of any model of the task, from its attention and its
predictions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sih.attention.head_reading import HeadReading, exact_selection, read_head
from sih.base.errors import FieldError, as_tokens, check_fields, check_kind
from sih.base.showing import Drawn, Words
from sih.beyond.diagnosis.law_reading import (
    Interval,
    LawReading,
    as_law,
    as_numbers,
    read_law,
    rounding_of,
)
from sih.beyond.diagnosis.resemblance import Resemblance, resemblances
from sih.models import Model
from sih.predictors.evidence import check_states, lag_posterior
from sih.task import (
    Batch,
    CausalTask,
    FreshTask,
    SwitchingTask,
    Task,
    check_task,
    first_position,
)

CHUNK = 64
"""Sequences on which a model of `sih` is run at once."""
COMPARED = 16
"""Sequences on which attention is compared with the known circuits'."""


@dataclass(frozen=True)
class Diagnosis(Drawn):
    """The findings of `diagnose`. They print as a table, and `plot()` draws them.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2), length=32)
    >>> batch = sih.sample(task, size=16, rng=0)
    >>> sih.diagnose(task, batch, law=sih.bma(batch.tokens, task)).verdict
    'Predicts like BMA (within 0.001 nats)'
    """

    drawing = "sih.beyond.diagnosis.diagnosis_figure:draw_diagnosis"

    lags: tuple[int, ...]
    """Labels of the task's hypotheses: its lags if it has lags."""
    sequences: int
    reference: str
    """The reference of KL: "the truth", or "BMA" if the lags were not given."""
    heads: tuple[HeadReading, ...]
    law: LawReading
    circuits: tuple[Resemblance, ...]
    """Distances from the known circuits, the nearest first."""
    notes: tuple[str, ...]
    """Further remarks, one line each."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def kl(self) -> dict[str, Interval]:
        """Return mean KL to the reference in nats, of "model", "bma", "ml" and
        "stationary".
        """
        return self.law.kl

    @property
    def lag_accuracy(self) -> dict[str, Interval]:
        """Return how often the prediction is nearest to that of the sequence's true
        lag, of "model", "bma" and "ml".
        """
        return self.law.lag_accuracy

    @property
    def verdict(self) -> str:
        """Return a summary in words: quality of the predictions, role of each head, and
        nearest circuit.
        """
        heads = "; ".join(f"{head.name} {head.role}" for head in self.heads)
        heads = f"Head {heads}" if heads else ""
        circuit = self.circuits[0].words if self.circuits else ""
        return ". ".join(said for said in (self.law.words, heads, circuit) if said)

    @property
    def labels(self) -> str:
        """Return the hypotheses' names: lags, or numbers from 0 if the task has none."""
        return f"{'hypotheses' if 0 in self.lags else 'lags'} {self.lags}"

    def rows(self) -> list[list[str]]:
        """Return the table of heads: one row per head, below a row of column names.

        >>> import sih
        >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2), length=16)
        >>> sih.diagnose(task, sih.sample(task, size=4, rng=0), model=sih.construct(task)).rows()[0][:4]
        ['head', 'parents', 'candidates', 'true lag']
        """
        measures = ["parents", "candidates", "true lag", "corr. p̃", "period", "content"]
        table = [["head", *measures, "role"]]
        for head in self.heads:
            period = f"{head.period} ({head.fit:.2f})" if head.period else "-"
            selected = f"{head.selected:.2f} of {head.exact:.2f}"
            shares = [_shares(head.parents), _shares(head.copies), selected]
            measures = [f"{head.correlation:+.2f}", period, f"{head.dependence:.2f}", head.role]
            table.append([head.name, *shares, *measures])
        return table

    def head_lines(self) -> list[str]:
        """Return the table of `rows` as lines, none if no attention was given.

        >>> import sih
        >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2), length=32)
        >>> batch = sih.sample(task, size=16, rng=0)
        >>> found = sih.diagnose(task, batch, model=sih.construct(task))
        >>> [line.split()[0] for line in found.head_lines()]
        ['head', '1.1', '2.1', '2.2', '3.1']
        """
        if not self.heads:
            return []
        width = [max(map(len, column)) for column in zip(*self.rows(), strict=True)]
        return [
            "  ".join(cell.ljust(w) for cell, w in zip(row, width, strict=True)).rstrip()
            for row in self.rows()
        ]

    def __repr__(self) -> str:
        return "\n".join([*self.head_lines(), *self._lines(), f"verdict: {self.verdict}"])

    def _facts(self) -> Mapping[str, Any]:
        kl = {f"KL_to_{self.reference.replace(' ', '_')}": self.kl["model"].mean} if self.kl else {}
        return {
            "lags": self.lags,
            "sequences": self.sequences,
            **kl,
            "verdict": Words(self.verdict),
        }

    def _lines(self) -> list[str]:
        lines = [
            f"{self.labels}, {self.sequences} sequences; means [two standard errors either way]"
        ]
        for title, found in (
            (f"KL to {self.reference}", self.kl),
            ("KL from BMA", self.law.to_bma),
            ("lag accuracy", self.lag_accuracy),
        ):
            if found:
                lines.append(
                    f"{title}: " + ", ".join(f"{name} {value}" for name, value in found.items())
                )
        if self.circuits:
            nearest = self.circuits[0]
            lines.append(
                f"nearest circuit: {nearest.circuit}, total variation (of uniform attention's): {nearest}"
            )
        return [*lines, *self.notes]


@torch.no_grad()
def diagnose(
    task: CausalTask,
    tokens: Batch | Tensor | np.ndarray,
    *,
    attention: Sequence[Any] | None = None,
    law: Any = None,
    model: nn.Module | None = None,
) -> Diagnosis:
    """Return a diagnosis of a model of the task, from its attention, its predictions,
    or both.

    Args:
        task: The task that the tokens were drawn from, with one known matrix and
            constant hypothesis per sequence.
        tokens: A `Batch`, or tokens of shape (batch, time). With a batch KL is to the
            truth. Otherwise it is to BMA's prediction, and a sequence's lag is taken to
            be the likeliest one.
        attention: For each layer the heads' attention after the softmax, (batch, head,
            query, key), or a list of heads (batch, query, key).
        law: Distribution of the next token at every position, (batch, time, state).
            Numbers below 0 are taken as logits.
        model: A model of `sih`, which gives both, or any module that maps tokens to
            distributions or logits.

    Returns:
        The role of each head, the quality of the predictions, and the distances from
            known circuits.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2, 3), length=32)
    >>> found = sih.diagnose(task, sih.sample(task, size=16, rng=0), model=sih.construct(task))
    >>> [head.role for head in found.heads][-1]
    'selects the true candidate'
    >>> found.circuits[0].words
    "Its attention is that of the circuit 'paper'"
    """
    check_task(task)
    if isinstance(task, FreshTask | SwitchingTask):
        says = "diagnose is for tasks of known matrices whose lag stays, e.g. sih.Task"
        raise FieldError("task", f"{says}; got {type(task).__name__}")
    batch, lags_known = _batch(task, tokens)
    if model is not None:
        law, attention = _run(model, batch.tokens, law, attention)
    if not isinstance(attention, list | tuple | None):
        found = type(attention).__name__
        raise FieldError(
            "attention", f"attention is a list with a tensor for each layer; got {found}"
        )
    if law is None and not attention:
        raise ValueError("there is nothing to diagnose; give attention=[...], law=... or model=...")
    first = model.first if isinstance(model, Model) else 0
    layers = [
        _attention(layer, number, batch, first) for number, layer in enumerate(attention or (), 1)
    ]
    circuits, notes = _known_circuits(layers, batch, task)
    read = LawReading()
    if law is not None:
        law, were_logits = as_law(law, batch, task)
        if were_logits:
            notes.append("the predictions were given as logits: their softmax was taken")
        read = read_law(law, batch, task, lags_known=lags_known)
    return Diagnosis(
        lags=task.hypotheses,
        sequences=len(batch.tokens),
        reference="the truth" if lags_known else "BMA",
        heads=_heads(layers, batch, task),
        law=read,
        circuits=circuits,
        notes=tuple(notes),
    )


def _run(
    model: nn.Module, tokens: Tensor, law: Any, attention: Sequence[Any] | None
) -> tuple[Any, Sequence[Any] | None]:
    """Return what a model predicts, and the attention that it gives or that is given."""
    if isinstance(model, Model):
        if law is not None or attention is not None:
            raise ValueError("give model=..., or attention=... and law=..., not both")
        return _pass(model, tokens)
    wanted = "a torch.nn.Module that maps tokens to distributions or logits"
    check_kind("model", model, nn.Module, wanted)
    if law is not None:
        raise ValueError("give model=... or law=..., not both")
    return model(tokens), attention


def _known_circuits(
    layers: Sequence[Tensor], batch: Batch, task: CausalTask
) -> tuple[tuple[Resemblance, ...], list[str]]:
    """Return the distance from each known circuit, and a note where there is none to compare with."""
    without = "not compared with the known circuits: they"
    if not isinstance(task, Task):
        return (), [f"{without} are of sih.Task, not of {type(task).__name__}"] if layers else []
    some = [layer[:COMPARED] for layer in layers]
    circuits = tuple(resemblances(some, batch.tokens[:COMPARED], task))
    if circuits or not layers:
        return circuits, []
    if len(layers) != 3:
        return (), [f"{without} have 3 layers, this model {len(layers)}"]
    return (), [f"{without} have 3 layers, and none is right at this length"]


def _heads(layers: Sequence[Tensor], batch: Batch, task: CausalTask) -> tuple[HeadReading, ...]:
    """Return what each head does, layer by layer."""
    if not layers:
        return ()
    exact = exact_selection(batch, task)
    readings = []
    for number, layer in enumerate(layers, 1):
        is_last = number == len(layers)
        for head, attention in enumerate(layer.unbind(dim=1), 1):
            name = f"{number}.{head}"
            readings.append(read_head(name, attention, batch, task, last=is_last, exact=exact))
    return tuple(readings)


def _pass(model: Model, tokens: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return a model's predictions and the attention of each layer, in chunks, since a
    trace needs far more memory.
    """
    laws, attention = [], []
    for part in tokens.split(CHUNK):
        laws.append(model.predict(part))
        attention.append([layer[..., model.first :, :] for layer in model.trace(part).attention])
    return torch.cat(laws), [torch.cat(layer) for layer in zip(*attention, strict=True)]


def _batch(task: CausalTask, given: Batch | Tensor | np.ndarray) -> tuple[Batch, bool]:
    """Return tokens on the CPU with each sequence's lag, and whether it is known; if
    not, it is the likeliest one.
    """
    found = as_tokens(given.tokens if isinstance(given, Batch) else given).detach().cpu()
    least = first_position(task) + 2
    if len(found) < 2 or found.shape[1] < least:
        wanted = f"whole numbers of shape (batch, time), 2 sequences and {least} tokens or more"
        raise FieldError(
            "tokens", f"tokens are {wanted}; got {found.dtype} of shape {tuple(found.shape)}"
        )
    tokens = check_states(found, task)
    if isinstance(given, Batch):
        return Batch(tokens, given.lags.cpu()), True
    return Batch(
        tokens, torch.tensor(task.hypotheses)[lag_posterior(tokens, task)[:, -1].argmax(dim=-1)]
    ), False


def _attention(
    given: Any, layer: int, batch: Batch, first: int
) -> Float[Tensor, "batch head query key"]:
    """Return a layer's attention as one tensor; raise a FieldError if it is not
    attention.

    A model of `sih` may have one more key, the `first`, for a start token.
    """
    size, time = batch.tokens.shape
    where = f"the attention of layer {layer}"
    if isinstance(given, list | tuple):
        heads = [as_numbers("attention", head) for head in given]
        if not heads or any(head.shape != (size, time, time) for head in heads):
            got = ", ".join(str(tuple(head.shape)) for head in heads) or "no heads"
            raise FieldError(
                "attention",
                f"each head of {where} must be of shape {(size, time, time)}; got {got}",
            )
        given = torch.stack(heads, dim=1)
    found = as_numbers("attention", given)
    rounding = rounding_of(found)
    found = found if found.dtype == torch.float64 else found.float()
    if found.ndim != 4 or (len(found), *found.shape[2:]) != (size, time, time + first):
        wanted = f"of shape (batch, head, query, key) = ({size}, heads, {time}, {time})"
        raise FieldError("attention", f"{where} must be {wanted}; got {tuple(found.shape)}")
    if not ((found >= 0).all() and ((found.sum(dim=-1) - 1).abs() <= rounding).all()):
        raise FieldError(
            "attention", f"{where} must be after the softmax: each query's sums to 1, none below 0"
        )
    if found.triu(1 + first).any():
        raise FieldError("attention", f"{where} must be causal: no attention to later keys")
    return found


def _shares(by_lag: dict[int, float]) -> str:
    return " ".join(f"{share:.2f}" for share in by_lag.values())
