"""Interventions on activations: predictions after a change.

`ablate` replaces activations by a mean, by zeros or by those of another sequence.
`patch` takes them from chosen other sequences. With `into` only the named readers see
the change. The model runs once with it, and the input of these readers is kept. They
read that input in a second pass, which is otherwise unmodified. So
`into=("3.1/query", "3.1/key")` acts on the third layer's scores alone. Models may be of
any kind. The names are those of `sih.models.sites`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor

from sih.base.errors import FieldError, as_tokens, check_choice, check_kind, generator
from sih.base.types import Seed
from sih.models.base import Model, check_model
from sih.models.sites import Trace
from sih.task import Batch

CHUNK = 64
"""Sequences that run at once. More are no faster and need more memory."""
Sequences = Batch | Integer[Tensor, "_ _"] | Integer[np.ndarray, "_ _"]
Names = str | Sequence[str]


def ablate(
    model: Model,
    batch: Sequences,
    names: Names,
    how: str = "mean",
    reference: Sequences | None = None,
    rng: Seed = 0,
    into: Names | None = None,
) -> Float[Tensor, "batch time state"]:
    """Return the model's predictions with some activations ablated.

    They are replaced by their mean, by zeros, or by those of another sequence.

    Args:
        model: a model of any kind.
        batch: sequences, a `Batch` or tokens, (batch, time).
        names: one or more names of activations, e.g. "2.1/attention".
        how: "mean", over the sequences of `reference` at each position; "zero"; or
            "resample", the activations of another of these sequences, drawn with `rng`,
            the same one for all names.
        reference: sequences for the mean or the resampling. Default: the batch itself.
        rng: a generator or a seed.
        into: the readers that see the change, e.g. "3.1/key". Default: all.

    Returns:
        The distribution of the next token, (batch, time, state).

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2, 3), length=32)
    >>> model, batch = sih.construct(task), sih.sample(task, size=16, rng=0)
    >>> laws = model.predict(batch.tokens), sih.ablate(model, batch, "3.1/attention")  # and without its choice
    >>> [round(sih.mean_kl(sih.kl_to_truth(law, batch, task), task).mean().item(), 3) for law in laws]
    [0.03, 0.149]
    """
    check_model(model)
    check_choice("how", how, ("mean", "zero", "resample"))
    rng = generator(rng)
    tokens, names = _tokens("batch", batch), _listed("names", names)
    others = tokens if reference is None else _tokens("reference", reference)
    if others.shape[1] != tokens.shape[1]:
        message = (
            f"reference must have the batch's {tokens.shape[1]} positions; got {others.shape[1]}"
        )
        raise FieldError("reference", message)
    if how == "resample":
        return patch(
            model, tokens, _donors(tokens, others, reference is not None, rng), names, into
        )
    values = (
        dict.fromkeys(names, torch.zeros(()))
        if how == "zero"
        else mean_values(model, others, names)
    )
    return replaced(model, tokens, values, into)


def patch(
    model: Model, clean: Sequences, corrupt: Sequences, names: Names, into: Names | None = None
) -> Float[Tensor, "batch time state"]:
    """Return predictions on clean sequences with some activations from corrupt ones.

    Args:
        model: a model of any kind.
        clean: the sequences to predict, a `Batch` or tokens, (batch, time).
        corrupt: one patch source per sequence, e.g. of another lag,
            `sih.sample(task, size, rng=rng, lag=2)`.
        names: one or more names of activations.
        into: the readers that see the change, e.g. "3.1/key". Default: all.

    Returns:
        The distribution of the next token for the clean sequences, (batch, time,
        state).

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 3), length=32)
    >>> model, clean, other = sih.construct(task), *(sih.sample(task, size=16, rng=0, lag=k) for k in (1, 3))
    >>> law = sih.patch(model, clean, other, ["3.1/query", "3.1/key"])  # it chooses as on the other sequences
    >>> as_other = sih.Batch(clean.tokens, other.lags)
    >>> own, others = (sih.kl_to_truth(law, batch, task)[:, -2].mean() for batch in (clean, as_other))
    >>> bool(others < own)
    True
    """
    check_model(model)
    tokens, others, names = (
        _tokens("clean", clean),
        _tokens("corrupt", corrupt),
        _listed("names", names),
    )
    if tokens.shape != others.shape:
        shapes = f"got {tuple(tokens.shape)} and {tuple(others.shape)}"
        raise FieldError(
            "corrupt", f"clean and corrupt sequences are of one shape, a pair in each row; {shapes}"
        )
    laws = []
    for mine, theirs in zip(tokens.split(CHUNK), others.split(CHUNK), strict=True):
        laws.append(replaced(model, mine, values_until(model, theirs, {}, names), into))
    return torch.cat(laws)


def replaced(
    model: Model,
    tokens: Int[Tensor, "batch time"],
    values: Mapping[str, Tensor],
    into: Names | None = None,
) -> Float[Tensor, "batch time state"]:
    """Return predictions with these values in place of the model's own.

    Each value is one for all sequences, or one for each.
    """
    return torch.cat([model.law(trace.output) for trace in passes(model, tokens, values, into)])


@torch.no_grad()
def passes(
    model: Model,
    tokens: Int[Tensor, "batch time"],
    values: Mapping[str, Tensor],
    into: Names | None = None,
) -> Iterator[Trace]:
    """Yield every pass of `replaced`, with all its activations.

    A pass has some of the sequences.
    """
    readers = () if into is None else _listed("into", into)
    for start in range(0, len(tokens), CHUNK):
        rows = slice(start, start + CHUNK)
        own = {
            name: value[rows] if value.ndim > 2 and len(value) > 1 else value
            for name, value in values.items()
        }
        yield model.run(
            tokens[rows],
            replace=values_until(model, tokens[rows], own, readers) if readers else own,
        )


class _SeenError(Exception):
    """The end of a pass of which no more values are needed."""


@torch.no_grad()
def values_until(
    model: Model,
    tokens: Int[Tensor, "batch time"],
    replace: Mapping[str, Tensor],
    names: Sequence[str],
) -> dict[str, Tensor]:
    """Return named activations of a pass, which stops when it has them."""
    found: dict[str, Tensor] = {}

    def see(name: str, value: Tensor) -> Tensor:
        found[name] = replace[name].to(value).expand(value.shape) if name in replace else value
        if len(found) == len(names):
            raise _SeenError
        return found[name]

    with suppress(_SeenError):
        model.run(tokens, replace={**replace, **{name: partial(see, name) for name in names}})
    return found


@torch.no_grad()
def mean_values(model: Model, batch: Sequences, names: Names) -> dict[str, Tensor]:
    """Return the mean of activations over sequences, at each position (and key)."""
    tokens = _tokens("batch", batch)
    sums: dict[str, Tensor] = {}
    for part in tokens.split(CHUNK):
        trace = model.trace(part)
        for name in _listed("names", names):
            total = trace[name].sum(dim=0, dtype=torch.float64)
            sums[name] = sums[name] + total if name in sums else total
    return {name: total / len(tokens) for name, total in sums.items()}


def _donors(own: Tensor, others: Tensor, apart: bool, rng: Seed) -> Int[Tensor, "batch time"]:
    """Return for each sequence a random patch source.

    It is never the sequence itself.
    """
    rng = generator(rng)
    if apart:
        return others[torch.randint(len(others), (len(own),), generator=rng)]
    if len(own) < 2:
        raise FieldError(
            "batch", "resampling takes another sequence's values; give two sequences or a reference"
        )
    order = torch.randperm(len(own), generator=rng)
    donor = torch.empty_like(order)
    donor[order] = order.roll(1)
    return others[donor]


def _tokens(name: str, batch: Sequences) -> Int[Tensor, "batch time"]:
    return as_tokens(batch.tokens if isinstance(batch, Batch) else batch, name)


def _listed(field: str, names: Names) -> tuple[str, ...]:
    listed = (
        (names,)
        if isinstance(names, str)
        else tuple(names)
        if isinstance(names, Sequence)
        else (names,)
    )
    for name in listed:
        check_kind(field, name, str, "names of values, e.g. ['2.1/attention']")
    if not listed:
        raise FieldError(
            field, f"{field} has at least one name of a value, e.g. '2.1/attention'; got none"
        )
    return listed
