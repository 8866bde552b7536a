"""Splits the stream that a model's last layer reads into named pieces: blocks, or the paths by which they came.

What the pieces are for, and the formula behind the paths, is in `score_shares.py`.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from sih.analysis.interventions import values_until
from sih.models.base import Model, check_scores
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.sites import Trace

Pieces = dict[str, tuple[slice, Tensor]]
"""Parts of the stream by name: their columns and values. One named "" is the same for all sequences."""


def block_pieces(model: Model, h: Float[Tensor, "batch time dim"]) -> Pieces:
    """Split a disentangled stream, as the last layer reads it, into its blocks."""
    assert isinstance(model, DisentangledTransformer)
    stream = model.stream(len(model.config.heads) - 1)
    return {name: (stream[name], h[..., stream[name]]) for name in stream.names}


def averaged(model: Model) -> list[str]:
    """Name the values whose means the paths need."""
    heads = [
        f"{layer}.{head}"
        for layer, n in enumerate(model.config.heads[:-1], 1)
        for head in range(1, n + 1)
    ]
    mlps = [
        name
        for name in model.hook_points()
        if name.endswith("/mlp") and not name.startswith(f"{_depth(model)}/")
    ]
    uses = [f"{head}/{what}" for head in heads for what in ("output", "attention", "value")]
    return ["0/stream", *uses, *mlps]


def path_pieces(model: Model, trace: Trace, means: dict[str, Tensor]) -> Pieces:
    """Split the stream that the last layer reads into what is common to all sequences and what came by each path."""
    h, tokens = trace[f"{_depth(model) - 1}/stream"], trace.tokens
    base = torch.zeros_like(h[:1])
    means = {name: mean.to(h) for name, mean in means.items()}
    pieces: Pieces = {"": (slice(None), base)}

    def put(path: str, name: str, deviation: Tensor, mean: Tensor) -> None:
        columns = _columns(model, name)
        pieces[path] = (columns, deviation)
        base[..., columns] += mean

    put("embedding", "0/stream", trace["0/stream"] - means["0/stream"], means["0/stream"])
    for layer, count in enumerate(model.config.heads[:-1], 1):
        names = [f"{layer}.{head}" for head in range(1, count + 1)]
        if layer > 1:
            looks, holds = (
                {f"{one}/{what}": means[f"{one}/{what}"] for one in names}
                for what in ("attention", "value")
            )
            outs = [f"{one}/output" for one in names]
            mean_a, mean_v, rest = (
                values_until(model, tokens, x, outs) for x in (looks, holds, looks | holds)
            )
        for one in names:
            out = f"{one}/output"
            if layer == 1:
                put(one, out, trace[out] - means[out], means[out])
                continue
            both, a, v, none = (
                run[out] for run in (trace, mean_v, mean_a, rest)
            )  # what is live: a and v, a, v, neither
            put(f"{one}:attention", out, (both + a - v - none) / 2, none[:1])
            pieces[f"{one}:values"] = (_columns(model, out), (both - a + v - none) / 2)
        if f"{layer}/mlp" in means:
            put(
                f"{layer}/mlp",
                f"{layer}/mlp",
                trace[f"{layer}/mlp"] - means[f"{layer}/mlp"],
                means[f"{layer}/mlp"],
            )
    return pieces


def _columns(model: Model, name: str) -> slice:
    """Give the columns of the last layer's stream that a written value goes to: all of them where values are added."""
    if not isinstance(model, DisentangledTransformer):
        return slice(None)
    if name == "0/stream":
        return slice(0, model.stream(0).dim)
    head = name.partition("/")[0]
    start = model.stream(_depth(model) - 1)[f"{head}/token"].start
    return slice(start, start + model.stream(int(head.partition(".")[0]) - 1).dim)


def score_matrix(model: Model, head: str) -> Float[Tensor, "dim dim"]:
    """Give W with score_ij = h_i W h_j: of a kind whose weights are not known here, by asking it basis vectors."""
    check_scores(model, "a matrix of scores")
    if isinstance(model, DisentangledTransformer):
        layer, index = (int(number) - 1 for number in head.split("."))
        A: Tensor = model.A[layer].detach()[index]
        return A
    length = model.config.length
    assert length is not None
    one = torch.zeros((1, length), dtype=torch.int64, device=next(model.parameters()).device)
    h = model.trace(one)[f"{head}/key"]
    basis, columns = torch.eye(h.shape[-1]).to(h), []
    for keys in basis.split(length):
        placed = torch.zeros_like(h)
        placed[:, : len(keys)] = keys
        run = model.run(
            one.expand(len(basis), -1),
            replace={f"{head}/query": basis[:, None], f"{head}/key": placed},
        )
        columns.append(run[f"{head}/scores"][:, -1, : len(keys)])
    return torch.cat(columns, dim=-1)


def _depth(model: Model) -> int:
    return len(model.config.heads)
