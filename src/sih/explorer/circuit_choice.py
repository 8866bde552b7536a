"""The circuit of a choice on the page, and its blocks: each resolved and written once.

Circuits with absolute positions are run from their written blocks, those with relative
positions as models.

A circuit read on both sides may need a fit of a few seconds. A view never waits for
one. It fails with an `UnfittedError`; the page then requests the fit, and the view
again.
"""

import math
from dataclasses import fields
from functools import lru_cache

import torch

from sih.base.errors import FieldError
from sih.circuits import Circuit
from sih.circuits.circuit_table import circuit_kind, circuit_options, circuits_of
from sih.explorer.state import ModelChoice
from sih.heads.two_sided_fit import quick_two_sided
from sih.models.disentangled.written import WrittenBlocks
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.task import Task

FIT = 6**2 * 128
"""The largest lags² x length that the page fits: six lags at 128 tokens, which take up
to 45 seconds of a core."""


class UnfittedError(FieldError):
    """Error: a circuit must be fitted before it can be shown."""


def resolve(where: str, choice: ModelChoice, task: Task) -> Circuit:
    """Return the circuit of a choice; raise an error about its slider or about the
    whole choice.
    """
    try:
        return _resolved(_Asked(task, choice))
    except FieldError as error:
        sliders = [entry.name for entry in fields(choice)]
        place = f"{where}.{error.field}" if error.field in sliders else where
        raise type(error)(place, str(error)) from error


def written_blocks(where: str, choice: ModelChoice, task: Task) -> WrittenBlocks:
    """Return the blocks of a choice's circuit."""
    resolve(where, choice, task)
    return _written(_Asked(task, choice))


def relative_model(where: str, choice: ModelChoice, task: Task) -> DisentangledRelativeTransformer:
    """Return the model of a circuit with relative positions that a choice asks for."""
    resolve(where, choice, task)
    return _built(_Asked(task, choice))


def fit_of(where: str, choice: ModelChoice, task: Task) -> tuple[tuple[int, ...], int, int] | None:
    """Return lags, length and heads of the fit that a choice still needs, or None."""
    if choice.trained:
        raise FieldError(
            where, "a trained model is not fitted here; circuits of the kind 'both' are"
        )
    try:
        resolve(where, choice, task)
    except UnfittedError:
        return task.lags, task.length, choice.options()["heads"]
    return None


def too_large_to_fit(lags: tuple[int, ...], length: int) -> str | None:
    """Return one line on why the page does not fit these lags at this length, or None."""
    if len(lags) ** 2 * length <= FIT:
        return None
    most = f"{math.isqrt(FIT // length)} lags are the most that the page fits at length {length}; got {len(lags)}"
    return f"{most}. sih.two_sided fits them in Python and keeps the fit, and then it is shown here"


class _Asked:
    """A task and a choice, as a key of a cache."""

    def __init__(self, task: Task, choice: ModelChoice) -> None:
        self.task, self.options = task, {"target": "paper", **choice.options()}
        numbers = (task.P.numpy().tobytes(), task.lag_prior.numpy().tobytes())
        self.identity = (*numbers, task.lags, task.length, tuple(sorted(self.options.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Asked) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


@lru_cache(maxsize=64)
def _resolved(asked: _Asked) -> Circuit:
    task, options = asked.task, dict(asked.options)
    target, circuits = options.pop("target"), circuits_of(options.pop("kind", "disentangled"))
    chosen = circuit_options(circuits, target, options)
    if (
        options.get("reading") == "both"
        and quick_two_sided(task.lags, task.length, options["heads"]) is None
    ):
        if too_large := too_large_to_fit(task.lags, task.length):
            raise FieldError("heads", too_large)
        raise UnfittedError("heads", "these heads read both sides and are not fitted yet")
    return circuit_kind(circuits, target).resolve(task, chosen, torch.float64)


@lru_cache(maxsize=6)  # the largest, 16 lags at length 256, takes 17 MB
def _written(asked: _Asked) -> WrittenBlocks:
    task, circuit = asked.task, _resolved(asked)
    blocks = WrittenBlocks(task.num_states, task.length, circuit.model_heads)
    circuit.write(blocks, task, "probability")
    return blocks


@lru_cache(maxsize=64)
def _built(asked: _Asked) -> DisentangledRelativeTransformer:
    model = _resolved(asked).build(asked.task, "probability", torch.float64)
    assert isinstance(model, DisentangledRelativeTransformer)
    return model.requires_grad_(False)
