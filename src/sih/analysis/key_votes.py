r"""Splits the last layer's score of each lag, in one sequence, by how it came and by the key that it was read from.

`score_shares.py` splits the scores by paths. A head's two paths are sums over the keys m that it attends to: $(a -
\bar a)_{im} \frac{y + \bar y}2_m$ (where it looked) and $\frac{a + \bar a}2_{im} (y - \bar y)_m$ (what it carried), y
what the head writes for a key that it pays everything. So each key has a vote for every lag: what its terms at the
query and at the lag's candidate add to the lag's score, less the mean over lags. Votes add up to the parts, and parts
to scores.

- **Trained models**: bars are means over sequences, as in `score_shares.py`.
- **Written blocks**: the parts are pairs of blocks, and what is taken off is the same with a first layer that does not
  see the tokens. Where layer 2's attention does not depend on the data this is all carried, and a head that is read by
  its position block alone has all in where it looked.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.analysis.interventions import mean_values, values_until
from sih.analysis.score_shares import apart, candidates, products
from sih.analysis.stream_pieces import averaged, path_pieces, score_matrix
from sih.models.base import Model, check_scores
from sih.models.disentangled import written
from sih.models.disentangled.written import WrittenBlocks
from sih.models.sites import Trace
from sih.task import Batch, Task

LOOKED, CARRIED = "attention", "values"


@dataclass(frozen=True, eq=False)
class KeyVotes:
    """Holds the last layer's scores of the lags at every position, less their mean over lags, and what they add up
    from. Heads of a last layer are averaged. Rows that lack a candidate hold 0."""

    score: Float[Tensor, "time lag"]
    common: Float[Tensor, "time lag"]
    """What is the same for all sequences."""
    parts: dict[str, Float[Tensor, "time lag"]]
    """By path: "embedding", "1.1", "2.1:attention" (where it looked), "2.1:values" (what it carried)."""
    votes: dict[str, Float[Tensor, "time key lag"]]
    """The parts of the heads between the first layer and the last, by key."""


@dataclass(frozen=True, eq=False)
class Averages:
    """Holds what a model does on average over sequences, and the matrices of its last layer's scores."""

    means: dict[str, Tensor]
    written: dict[str, Float[Tensor, "time dim"]]
    """What a head writes for each key that it pays everything, if it reads the means."""
    matrices: list[Float[Tensor, "dim dim"]]


@torch.no_grad()
def averages(model: Model, batch: Batch) -> Averages:
    """Measure on some sequences what `path_votes` takes off."""
    check_scores(model, "a split into votes")
    heads = model.config.heads
    means = mean_values(model, batch, averaged(model))
    written: dict[str, Tensor] = {}
    for layer in range(2, len(heads)):
        names = [f"{layer}.{head}" for head in range(1, heads[layer - 1] + 1)]
        held = {f"{name}/value": means[f"{name}/value"] for name in names}
        written |= {
            name: y[0] for name, y in _each_key(model, batch.tokens[:1], names, held).items()
        }
    last = [f"{len(heads)}.{head}" for head in range(1, heads[-1] + 1)]
    scale = model.config.temperature * len(last)
    return Averages(means, written, [score_matrix(model, head).double() / scale for head in last])


@torch.no_grad()
def path_votes(model: Model, task: Task, tokens: Int[Tensor, " time"], known: Averages) -> KeyVotes:
    """Split the scores of a model of three layers or more, in units of its attention's logarithm."""
    heads, last = model.config.heads, len(model.config.heads)
    if last < 3:
        raise ValueError(
            f"votes are of heads between the first layer and the last; got heads {heads}"
        )
    trace = model.trace(tokens[None])
    h = trace[f"{last - 1}/stream"].double()
    pieces = path_pieces(model, trace, known.means)
    pieces = {name: (columns, value.double()) for name, (columns, value) in pieces.items()}
    u = ((pieces[""][1] + h) / 2)[0]
    ways = {}
    for layer in range(2, last):
        names = [f"{layer}.{head}" for head in range(1, heads[layer - 1] + 1)]
        for name, y in _each_key(model, tokens[None], names, {}).items():
            a, mean_a = (
                trace[f"{name}/attention"][0].double(),
                known.means[f"{name}/attention"].double(),
            )
            mean_y = known.written[name].double()
            ways[f"{name}:{LOOKED}"] = (a - mean_a, (y[0].double() + mean_y) / 2)
            ways[f"{name}:{CARRIED}"] = ((a + mean_a) / 2, y[0].double() - mean_y)
    score = torch.zeros(())
    parts: dict[str, Tensor] = {}
    votes: dict[str, Tensor] = {}
    for W in known.matrices:
        for part, value in products(pieces, W, h, task, mirrored=True):
            parts[str(part)] = parts.get(str(part), 0) + apart(value[0])
        for way, (a, y) in ways.items():
            columns = pieces[way][0]
            votes[way] = votes.get(way, 0) + _votes(a, y @ W[columns] @ u.T, task)
            votes[way] = votes[way] + _votes(a, y @ (u @ W[:, columns]).T, task, at_key=True)
        score = score + h[0] @ W @ h[0].T
    return _whole(candidates(score, task), parts.pop(""), parts, votes, task)


@torch.no_grad()
def written_votes(blocks: WrittenBlocks, task: Task, tokens: Int[Tensor, " time"]) -> KeyVotes:
    """Split the scores of the three-layer model that has these blocks."""
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


def _whole(
    score: Tensor, common: Tensor, parts: dict[str, Tensor], votes: dict[str, Tensor], task: Task
) -> KeyVotes:
    """Take off the mean over lags, and put 0 where a lag has no candidate."""
    whole = (torch.arange(len(score)) >= task.max_lag - 1)[:, None]
    parts = {name: torch.where(whole, part, 0.0) for name, part in parts.items()}
    votes = {name: torch.where(whole[..., None], apart(part), 0.0) for name, part in votes.items()}
    return KeyVotes(
        torch.where(whole, apart(score), 0.0), torch.where(whole, common, 0.0), parts, votes
    )


def _each_key(
    model: Model, tokens: Int[Tensor, "batch time"], names: list[str], held: dict[str, Tensor]
) -> dict[str, Float[Tensor, "batch time dim"]]:
    """Give what heads of one layer write for each key: their output if every row attends to its own position."""
    one = torch.eye(tokens.shape[1])
    eyes = {f"{name}/attention": one for name in names}
    found = values_until(model, tokens, {**held, **eyes}, [f"{name}/output" for name in names])
    return {name: found[f"{name}/output"] for name in names}


def _votes(
    a: Float[Tensor, "time key"], read: Float[Tensor, "key time"], task: Task, at_key: bool = False
) -> Float[Tensor, "time key lag"]:
    """Give a_im read_mj, what the query attended read by the candidate j = i - k + 1, or a_jm read_mi, the converse."""
    out = torch.zeros(*a.shape, len(task.lags), dtype=torch.float64)
    for index, k in enumerate(task.lags):
        keys, rows = slice(0, len(a) - k + 1), slice(k - 1, len(a))
        attended, reader = (keys, rows) if at_key else (rows, keys)
        out[rows, :, index] = a[attended] * read[:, reader].T
    return out


def _pairs(blocks: WrittenBlocks, trace: Trace, task: Task) -> Iterator[tuple[str, Tensor]]:
    """Give each written pair of blocks' part of the scores, by key where a head of layer 2 is read."""
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
            _votes(trace[f"{head}/attention"][0], trace[held][0] @ B @ y.T, task, at_key),
        )


def _blind(blocks: WrittenBlocks) -> WrittenBlocks:
    """Give the same blocks but those by which the first layer sees tokens."""
    blind = WrittenBlocks(
        blocks.num_states, blocks.length, blocks.heads, blocks.temperature, blocks.dtype
    )
    blind.readout = blocks.readout
    for head, pairs in blocks.A.items():
        first = head.startswith("1.")
        blind.A[head] = {pair: A for pair, A in pairs.items() if not (first and "token" in pair)}
    return blind
