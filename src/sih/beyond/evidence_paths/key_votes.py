r"""Decomposition of the last layer's score of each lag in one sequence, by path and by
key.

`score_shares.py` splits the scores by paths. A head's two paths are sums over the keys
m that it attends to: $(a - \bar a)_{im} \frac{y + \bar y}2_m$ (patterns) and
$\frac{a + \bar a}2_{im} (y - \bar y)_m$ (values), with y the head's output for a key
with attention 1. So each key has a vote for every lag: the contribution of its terms at
the query and at the lag's candidate to the lag's score, minus the mean over lags. Votes
add up to the parts, and parts to scores. If values depend on the offset, the output for
a key depends on the query's row, $y_{im}$.

- **Trained models**: bars are means over sequences, as in `score_shares.py`.
- **Written blocks**: the parts are pairs of blocks. The reference is the same circuit
  with a first layer that does not read the tokens. If layer 2's attention does not
  depend on the data, everything passes through the values. If a head is read by its
  position block alone, everything passes through the patterns.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.interventions import mean_values, values_until
from sih.beyond.evidence_paths.score_shares import TOLERANCE, apart, candidates, products
from sih.beyond.evidence_paths.stream_pieces import (
    Forms,
    averaged,
    last_stream,
    path_pieces,
    score_forms,
)
from sih.models.base import Model
from sih.models.disentangled import written
from sih.models.disentangled.written import WrittenBlocks
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.models.relative.offset_blocks import OFFSET
from sih.models.sites import Trace
from sih.task import Batch, Task

LOOKED, CARRIED = "attention", "values"
ROUNDING = 1e-5
"""Largest relative difference of a head's outputs for a key from two rows that count as
the same."""


@dataclass(frozen=True, eq=False)
class KeyVotes:
    """Scores of the lags in the last layer at every position, minus their mean over
    lags, with their parts.

    Heads of a last layer are averaged. Rows that lack a candidate are 0.
    """

    score: Float[Tensor, "time lag"]
    common: Float[Tensor, "time lag"]
    """The part shared by all sequences."""
    parts: dict[str, Float[Tensor, "time lag"]]
    """By path: "embedding", "1.1", "2.1:attention" (patterns), "2.1:values" (values)."""
    votes: dict[str, Float[Tensor, "time key lag"]]
    """The parts of the heads between the first layer and the last, by key: a start
    token is the first key."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Mean activations of a model over sequences."""

    means: dict[str, Tensor]
    written: dict[str, Float[Tensor, "key dim"]]
    """A head's output for each key with attention 1, if its inputs are the means."""
    by_row: dict[str, Float[Tensor, "row key dim"]]
    """Change of that output if a later row attends to the key, for heads with values
    that depend on the offset."""


@torch.no_grad()
def averages(model: Model, batch: Batch) -> Averages:
    """Return the means over some sequences that `path_votes` subtracts."""
    heads = model.config.heads
    means = mean_values(model, batch, averaged(model))
    written: dict[str, Tensor] = {}
    by_row: dict[str, Tensor] = {}
    for layer in range(2, len(heads)):
        names = [f"{layer}.{head}" for head in range(1, heads[layer - 1] + 1)]
        held = {f"{name}/value": means[f"{name}/value"] for name in names}
        written |= {
            name: y[0] for name, y in _each_key(model, batch.tokens[:1], names, held).items()
        }
        for name, moved in _each_row(model, batch.tokens[:1], names, held).items():
            if moved.abs().max() > ROUNDING * written[name].abs().max():
                by_row[name] = moved
    return Averages(means, written, by_row)


@torch.no_grad()
def path_votes(model: Model, task: Task, tokens: Int[Tensor, " time"], known: Averages) -> KeyVotes:
    """Return the decomposition for a model of three layers or more, in units of its
    attention's logarithm.
    """
    heads, last = model.config.heads, len(model.config.heads)
    if last < 3:
        raise ValueError(
            f"votes are of heads between the first layer and the last; got heads {heads}"
        )
    trace = model.trace(tokens[None])
    h = last_stream(model, trace).double()
    pieces = path_pieces(model, trace, known.means)
    pieces = {name: (columns, value.double()) for name, (columns, value) in pieces.items()}
    ways: dict[str, tuple[Tensor, Tensor]] = {}
    moved: dict[str, Tensor] = {}
    for layer in range(2, last):
        names = [f"{layer}.{head}" for head in range(1, heads[layer - 1] + 1)]
        for name, y in _each_key(model, tokens[None], names, {}).items():
            a, mean_a = (
                trace[f"{name}/attention"][0, model.first :].double(),
                known.means[f"{name}/attention"][model.first :].double(),
            )
            mean_y = known.written[name].double()
            ways[f"{name}:{LOOKED}"] = (a - mean_a, (y[0].double() + mean_y) / 2)
            ways[f"{name}:{CARRIED}"] = ((a + mean_a) / 2, y[0].double() - mean_y)
        late = [name for name in names if name in known.by_row]
        for name, own in _each_row(model, tokens[None], late, {}).items():
            mean = known.by_row[name]
            moved[f"{name}:{LOOKED}"] = (own + mean)[model.first :].double() / 2
            moved[f"{name}:{CARRIED}"] = (own - mean)[model.first :].double()
    score = torch.zeros(len(tokens), len(task.lags), dtype=torch.float64)
    parts: dict[str, Tensor] = {}
    votes: dict[str, Tensor] = {}
    for forms in last_forms(model, task):
        for part, value in products(pieces, forms, h, task, mirrored=True):
            parts[str(part)] = parts.get(str(part), 0) + apart(value[0])
        x = forms.completed(h)[0]
        u = (forms.completed(pieces[""][1])[0] + x) / 2
        for W, which in forms.matrices:
            for way, (a, y) in ways.items():
                columns = pieces[way][0]
                at_query, at_key = y @ W[columns] @ u.T, y @ (u @ W[:, columns]).T
                votes[way] = votes.get(way, 0) + _votes(a, at_query, task, which)
                votes[way] = votes[way] + _votes(a, at_key, task, which, at_key=True)
                if way in moved:
                    at_query, at_key = u @ W[columns].T, u @ W[:, columns]
                    votes[way] = votes[way] + _row_votes(a, moved[way], at_query, task, which)
                    votes[way] += _row_votes(a, moved[way], at_key, task, which, at_key=True)
            score[:, which] += candidates(x @ W @ x.T, task)[:, which]
    found = _whole(score, parts.pop(""), parts, votes, task)
    _check_votes(found, _scores(model, trace, task), task)
    return found


def last_forms(model: Model, task: Task) -> list[Forms]:
    """Return the forms of each head of the last layer, in units of the logarithm of its
    attention.
    """
    last, count = len(model.config.heads), model.config.heads[-1]
    offsets = [lag - 1 for lag in task.lags]
    scale = model.config.temperature * count
    heads = (f"{last}.{head}" for head in range(1, count + 1))
    return [score_forms(model, head, offsets).scaled(scale) for head in heads]


def _scores(model: Model, trace: Trace, task: Task) -> Float[Tensor, "time lag"]:
    """Return the last layer's actual scores of the lags, minus their mean."""
    scores = trace.scores[-1][0, :, model.first :, model.first :].double().mean(dim=0)
    return apart(candidates(scores / model.config.temperature, task))


def _check_votes(found: KeyVotes, scores: Float[Tensor, "time lag"], task: Task) -> None:
    """Raise a ValueError unless votes add up to parts, and parts to the model's score."""
    if len(scores) < task.max_lag:
        return
    missed = (found.score - scores)[task.max_lag - 1 :].abs().max().item()
    largest = max(part.abs().max().item() for part in [found.common, *found.parts.values()])
    if missed > TOLERANCE * largest:
        raise ValueError(
            f"the votes miss the last layer's scores by {missed:.2g}: path_votes needs a stream that is the sum of "
            "what heads write, or is disentangled, and scores that are bilinear in it at each offset"
        )
    for name, votes in found.votes.items():
        missed = (votes.sum(dim=1) - found.parts[name]).abs().max().item()
        if missed > TOLERANCE * largest:
            raise ValueError(
                f"the votes of {name.partition(':')[0]} miss their sum by {missed:.2g}: path_votes needs heads that "
                "write a sum over keys of what each of them is worth"
            )


@torch.no_grad()
def written_votes(blocks: WrittenBlocks, task: Task, tokens: Int[Tensor, " time"]) -> KeyVotes:
    """Return the decomposition for the three-layer model with these blocks."""
    live, still = written.run(blocks, tokens[None]), written.run(_blind(blocks), tokens[None])
    parts: dict[str, Tensor] = {}
    votes: dict[str, Tensor] = {}
    common = torch.zeros(len(tokens), len(task.lags), dtype=torch.float64)
    for sign, trace in ((1.0, live), (-1.0, still)):
        for name, pair in _pairs(blocks, trace, task):
            if pair.ndim == 3:
                votes[name] = votes.get(name, 0) + sign * pair
                pair = pair.sum(dim=1)
            parts[name] = parts.get(name, 0) + sign * apart(pair)
            common = common if sign > 0 else common + apart(pair)
    parts = {name: part for name, part in parts.items() if part.any()}
    return _whole(candidates(live["3.1/scores"][0], task), common, parts, votes, task)


@torch.no_grad()
def offset_votes(
    model: DisentangledRelativeTransformer, task: Task, tokens: Int[Tensor, " time"]
) -> KeyVotes:
    """Split the scores of a three-layer circuit with relative positions, which reads blocks against offsets.

    Taken off is the same as of written blocks: the circuit whose first layer does not see the tokens.
    """
    start, last = model.config.num_states, str(len(model.config.heads))
    blind = copy.deepcopy(model)
    for number in range(1, model.config.heads[0] + 1):
        blind.block(f"1.{number}", "token", "token")[:start, :start] = 0
    places = [lag - 1 for lag in task.lags]
    read = {
        query: A[:, places] / model.config.temperature
        for (query, key), A in model.written_blocks().A[f"{last}.1"].items()
        if key == OFFSET
    }
    parts: dict[str, Tensor] = {}
    votes: dict[str, Tensor] = {}
    common = torch.zeros(len(tokens), len(task.lags), dtype=torch.float64)
    live, still = (each.trace(tokens[None]) for each in (model, blind))
    for query, A in read.items():
        head, _, held = query.partition("/")
        for sign, trace in ((1.0, live), (-1.0, still)):
            own = trace[query][0, model.first :].double() @ A.double()
            common = common if sign > 0 else common + apart(own)
            if not held:
                continue
            name = f"{head}:{CARRIED}"
            looks = trace[f"{head}/attention"][0, model.first :].double()
            worth = looks[:, :, None] * (trace[held][0].double() @ A.double())
            parts[name] = parts.get(name, 0) + sign * apart(own)
            votes[name] = votes.get(name, 0) + sign * worth
    found = _whole(common + sum(parts.values()), common, parts, votes, task)
    _check_votes(found, _scores(model, live, task), task)
    return found


def _whole(
    score: Tensor, common: Tensor, parts: dict[str, Tensor], votes: dict[str, Tensor], task: Task
) -> KeyVotes:
    """Return scores minus the mean over lags, with 0 for a lag without a candidate."""
    whole = (torch.arange(len(score)) >= task.max_lag - 1)[:, None]
    parts = {name: torch.where(whole, part, 0.0) for name, part in parts.items()}
    votes = {name: torch.where(whole[..., None], apart(part), 0.0) for name, part in votes.items()}
    return KeyVotes(
        torch.where(whole, apart(score), 0.0), torch.where(whole, common, 0.0), parts, votes
    )


def _each_key(
    model: Model, tokens: Int[Tensor, "batch time"], names: list[str], held: dict[str, Tensor]
) -> dict[str, Float[Tensor, "batch time dim"]]:
    """Return the output of one layer's heads for each key: the output if every row
    attends to its own position.
    """
    one = torch.eye(tokens.shape[1] + model.first)
    eyes = {f"{name}/attention": one for name in names}
    found = values_until(model, tokens, {**held, **eyes}, [f"{name}/output" for name in names])
    return {name: found[f"{name}/output"] for name in names}


def _each_row(
    model: Model, tokens: Int[Tensor, "1 time"], names: list[str], held: dict[str, Tensor]
) -> dict[str, Float[Tensor, "row key dim"]]:
    """Return the output of one layer's heads for each key with attention 1 from one
    row, minus that from the key's row.
    """
    if not names:
        return {}
    place = torch.arange(tokens.shape[1] + model.first)
    offset = (place[:, None] - place).clamp(min=0)
    shifted = torch.nn.functional.one_hot((place - place[:, None]).clamp(min=0)).float()
    looks = {f"{name}/attention": shifted for name in names}  # sequence o attends to offset o
    outs = [f"{name}/output" for name in names]
    found = values_until(model, tokens.expand(len(place), -1), {**held, **looks}, outs)
    earlier = (place[:, None] >= place)[..., None]
    return {
        name: torch.where(earlier, found[out][offset, place[:, None]] - found[out][0], 0.0)
        for name, out in zip(names, outs, strict=True)
    }


def _row_votes(
    a: Float[Tensor, "time key"],
    moved: Float[Tensor, "time key dim"],
    read: Float[Tensor, "time dim"],
    task: Task,
    which: Sequence[int],
    at_key: bool = False,
) -> Float[Tensor, "time key lag"]:
    """Return the part of `_votes` from the difference of a head's outputs for a key
    between two rows.
    """
    out = torch.zeros(*a.shape, len(task.lags), dtype=torch.float64)
    for index in which:
        k = task.lags[index]
        keys, rows = slice(0, len(a) - k + 1), slice(k - 1, len(a))
        attended, reader = (keys, rows) if at_key else (rows, keys)
        worth = torch.einsum("imd,id->im", moved[attended], read[reader])
        out[rows, :, index] = a[attended] * worth
    return out


def _votes(
    a: Float[Tensor, "time key"],
    read: Float[Tensor, "key time"],
    task: Task,
    which: Sequence[int] | None = None,
    at_key: bool = False,
) -> Float[Tensor, "time key lag"]:
    """Return a_im read_mj, the query's values read by the candidate j = i - k + 1, or
    a_jm read_mi, the converse.

    Only for some lags, by their indices, if given.
    """
    out = torch.zeros(*a.shape, len(task.lags), dtype=torch.float64)
    for index in range(len(task.lags)) if which is None else which:
        k = task.lags[index]
        keys, rows = slice(0, len(a) - k + 1), slice(k - 1, len(a))
        attended, reader = (keys, rows) if at_key else (rows, keys)
        out[rows, :, index] = a[attended] * read[:, reader].T
    return out


def _pairs(blocks: WrittenBlocks, trace: Trace, task: Task) -> Iterator[tuple[str, Tensor]]:
    """Return the part of each written pair of blocks in the scores, by key if a head of
    layer 2 is read.
    """
    for (query, key), A in blocks.A["3.1"].items():
        at_key = not query.startswith("2.")
        read, other = (key, query) if at_key else (query, key)
        B = (A.T if at_key else A) / blocks.temperature
        x, y = trace[read][0], trace[other][0]
        if not read.startswith("2."):
            scores = x @ B @ y.T
            scores = scores.T if at_key else scores
            yield "embedding" if not (query + key).count("1.") else "1.1", candidates(scores, task)
            continue
        head, _, held = read.partition("/")
        way = LOOKED if held in ("token", "position") else CARRIED
        yield (
            f"{head}:{way}",
            _votes(trace[f"{head}/attention"][0], trace[held][0] @ B @ y.T, task, at_key=at_key),
        )


def _blind(blocks: WrittenBlocks) -> WrittenBlocks:
    """Return the blocks without those by which the first layer's attention sees tokens."""
    sizes = blocks.num_states, blocks.length, blocks.heads
    blind = WrittenBlocks(*sizes, blocks.temperature, blocks.dtype)
    blind.readout = blocks.readout
    for head, pairs in blocks.A.items():
        if head.startswith("1."):
            pairs = {pair: A for pair, A in pairs.items() if "token" not in pair}
        blind.A[head] = dict(pairs)
    return blind
