"""`make_channels`: the contributions of each path to each lag's score in the last
layer, as arrays for the page.

`score` is that of each lag's candidate, minus the mean over lags. `common` is the part
shared by all sequences, and `part/NAME` the part of each path; common and parts add up
to the score. Further arrays describe each key of each head between the first layer and
the last. `lag/votes` is the lag that the key votes for (from 1; 0 for none). `lag/WAY`
and `size/WAY` are the same by path: the lag, and the size from 0 to 255, relative to
the head's largest vote in that row. WAY is "attention" (attention patterns) or
"values".
"""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.beyond.evidence_paths.key_votes import (
    CARRIED,
    LOOKED,
    Averages,
    KeyVotes,
    averages,
    offset_votes,
    path_votes,
    written_votes,
)
from sih.beyond.evidence_paths.phases import has_phases, read_phases
from sih.explorer.circuit_choice import relative_model, written_blocks
from sih.explorer.state import ModelChoice, State
from sih.explorer.trained_models import Runs, fitting_model
from sih.explorer.view import View, draw_sequence
from sih.task import Task, sample
from sih.training.runs.run import Run

REFERENCE = 64
"""Sequences over which a trained model is averaged."""
NOTHING = 1e-3
"""A vote counts for no lag if its size is below this share of the row's largest."""
BY_ROW = 128
"""The longest sequence in which heads are split whose values know the offset: 3 seconds, 0.3 GB."""


def make_channels(state: State, index: int, runs: Runs) -> View:
    """Return the channels of model `index` on the state's sequence; raise a
    `FieldError` if it has none.
    """
    choice, task = state.choice(index), state.task()
    tokens = draw_sequence(state, task).tokens[0]
    found = _key_votes(f"models.{index}", choice, task, tokens, runs)
    heads = sorted(
        {name.partition(":")[0] for name in found.votes},
        key=lambda head: [*map(int, head.split("."))],
    )
    arrays = {"score": found.score.float(), "common": found.common.float()}
    arrays |= {f"part/{name}": part.float() for name, part in found.parts.items()}
    between = {name: votes[:, -len(tokens) :] for name, votes in found.votes.items()}
    arrays |= _voted(between, heads)  # without the key of a start token
    periods = _periods(runs[str(choice.name)]) if choice.trained else {}
    header = {"heads": heads, "parts": list(found.parts), "periods": periods}
    return View(header, {name: array.numpy() for name, array in arrays.items()})


def _key_votes(
    where: str, choice: ModelChoice, task: Task, tokens: Int[Tensor, " time"], runs: Runs
) -> KeyVotes:
    if choice.relative:
        return offset_votes(relative_model(where, choice, task), task, tokens)
    if not choice.trained:
        return written_votes(written_blocks(where, choice, task), task, tokens)
    model, run = fitting_model(where, str(choice.name), task, runs), runs[str(choice.name)]
    if len(model.config.heads) < 3:
        raise FieldError(
            where,
            f"{run.name} has no layer between the first and the last, so no head that copies values",
        )
    if not model.scores_from_stream and task.length > BY_ROW:
        raise FieldError(
            where,
            f"the paths of a model with relative positions are shown up to length {BY_ROW}; got {task.length}",
        )
    try:
        return path_votes(model, task, tokens, _averages(run, task.length))
    except ValueError as error:
        raise FieldError(where, f"{run.name}: {error}") from error


def _voted(votes: dict[str, Float[Tensor, "time key lag"]], heads: list[str]) -> dict[str, Tensor]:
    """Return the lag and the size of each key's vote in each head, in total and by
    path.
    """
    most: dict[str, list[Tensor]] = {"votes": [], LOOKED: [], CARRIED: []}
    lags: dict[str, list[Tensor]] = {name: [] for name in most}
    for head in heads:
        ways = {
            way: votes[f"{head}:{way}"] for way in (LOOKED, CARRIED) if f"{head}:{way}" in votes
        }
        zero = torch.zeros_like(next(iter(ways.values())))
        for name, vote in {
            "votes": sum(ways.values(), zero),
            LOOKED: zero,
            CARRIED: zero,
            **ways,
        }.items():
            value, lag = vote.max(dim=-1)
            most[name].append(value)
            lags[name].append(lag)
    sizes = {name: torch.stack(values) for name, values in most.items()}
    largest = (
        torch.stack([size.amax(dim=(0, 2)) for size in sizes.values()]).amax(dim=0).clamp_min(1e-12)
    )
    arrays = {}
    for name, size in sizes.items():
        arrays[f"lag/{name}"] = torch.where(
            size > NOTHING * largest[:, None], torch.stack(lags[name]) + 1, 0
        )
        arrays[f"size/{name}"] = 255 * size / size.amax(dim=2, keepdim=True).clamp_min(1e-12)
    del arrays["size/votes"]
    return {name: array.round().to(torch.uint8) for name, array in arrays.items()}


@lru_cache(maxsize=4)  # the largest shipped model takes about 30 MB
def _averages(run: Run, length: int) -> Averages:
    return averages(run.model, sample(replace(run.task, length=length), REFERENCE, rng=0))


@lru_cache(maxsize=32)
def _periods(run: Run) -> dict[str, Any]:
    """Return the period of each head's attention in layer 2, and the share of its
    scores by offset that it explains.
    """
    if not has_phases(run.model, run.task):
        return {}
    with torch.no_grad():
        found = read_phases(run.model, run.task)
    return {head: [found.period[head], round(found.explained[head], 2)] for head in found.period}
