"""Decomposition of the stream that a model's last layer reads into named pieces:
blocks, or paths.

`score_shares.py` uses the pieces and has the formula of the paths. Scores are read as
bilinear forms of the stream, one per offset. If a score is affine in the query's or the
key's input (a vector per offset is added to keys, for example), the stream has one more
coordinate, always 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.interventions import values_until
from sih.models.base import Model
from sih.models.sites import Trace

Pieces = dict[str, tuple[slice, Tensor]]
"""Parts of the stream by name: their columns and values. The part "" is the same for
all sequences."""
Read = tuple[Tensor, list[int]]
"""The queries' reads, as vectors to be multiplied with keys, with the indices of their
offsets."""
ONE = "offset"
"""The piece for the coordinate 1: a block against it is a block against the offset."""


@dataclass(frozen=True, eq=False)
class Forms:
    """Matrices W with score_ij = h_i W h_j at some offsets; offsets with the same W
    share one.
    """

    matrices: list[tuple[Tensor, list[int]]]
    """Each matrix with the indices of its offsets."""
    affine: bool
    """Whether they read one more coordinate than the stream has, the 1."""

    def read(self, x: Float[Tensor, "*rows width"], rows: slice = slice(None)) -> list[Read]:
        """Return x W at each offset, with x those coordinates of the stream."""
        return [(x @ W[rows], which) for W, which in self.matrices]

    def scaled(self, scale: float) -> Forms:
        """Return the forms in double precision, divided by a number."""
        return Forms([(W.double() / scale, which) for W, which in self.matrices], self.affine)

    def completed(self, h: Float[Tensor, "*rows width"]) -> Float[Tensor, "*rows dim"]:
        """Return the stream with the coordinate 1 appended if the forms read one."""
        return torch.nn.functional.pad(h, (0, 1), value=1.0) if self.affine else h


@torch.no_grad()
def score_forms(model: Model, head: str, offsets: Sequence[int]) -> Forms:
    """Return a head's scores as bilinear forms of the stream, from its scores of basis
    vectors and of 0.
    """
    one = torch.zeros(1, 1, dtype=torch.int64, device=model.device)
    read = model.trace(one)[f"{head}/key"]
    basis = torch.eye(read.shape[-1]).to(read)
    asked = torch.cat([basis, torch.zeros_like(basis[:1])])
    found: list[tuple[Tensor, list[int]]] = []
    for index, offset in enumerate(offsets):
        scores = model.scores(head, asked, asked, offset)
        same = next((which for known, which in found if torch.equal(known, scores)), None)
        if same is None:
            found.append((scores, [index]))
        else:
            same.append(index)
    affine = any(bool(scores[-1].any() or scores[:, -1].any()) for scores, _ in found)
    form = _affine if affine else _bilinear
    return Forms([(form(scores), which) for scores, which in found], affine)


def score_matrix(model: Model, head: str) -> Float[Tensor, "dim dim"]:
    """Return W with score_ij = h_i W h_j; raise a ValueError if the score also depends
    on the offset.
    """
    forms = score_forms(model, head, (0, 1))
    if len(forms.matrices) > 1 or forms.affine:
        raise ValueError(
            f"one matrix of scores needs scores that are bilinear in the stream; those of {head} depend on the offset"
        )
    return forms.matrices[0][0]


def _bilinear(scores: Float[Tensor, "asked asked"]) -> Float[Tensor, "dim dim"]:
    return scores[:-1, :-1].contiguous()


def _affine(scores: Float[Tensor, "asked asked"]) -> Float[Tensor, "asked asked"]:
    """Return W with score = [x, 1] W [y, 1], from the scores of basis vectors and of 0,
    the last.
    """
    corner = scores[-1, -1]
    query, key = scores[:, -1:] - corner, scores[-1:] - corner
    W = scores - corner - query - key
    W[:, -1:], W[-1:], W[-1, -1] = query, key, corner
    return W


def in_blocks(model: Model) -> bool:
    """Return whether the stream is blocks side by side, with separate columns for each
    written value.
    """
    return any(model.columns(name, 0) != slice(None) for name in model.writers(0))


def block_pieces(model: Model, trace: Trace) -> Pieces:
    """Return the blocks of the stream, as the last layer reads it."""
    layers = _depth(model) - 1
    h = last_stream(model, trace)
    columns = {name: model.columns(name, layers) for name in model.writers(layers)}
    return {name: (where, h[..., where]) for name, where in columns.items()}


def last_stream(model: Model, trace: Trace) -> Float[Tensor, "batch time dim"]:
    """Return the stream that the last layer reads, in the rows of tokens."""
    return trace[f"{_depth(model) - 1}/stream"][:, model.first :]


def averaged(model: Model) -> list[str]:
    """Return the names of the activations that paths replace by their means."""
    heads = [
        f"{layer}.{head}"
        for layer, n in enumerate(model.config.heads[:-1], 1)
        for head in range(1, n + 1)
    ]
    mlps = [name for name in model.writers(_depth(model) - 1) if name.endswith("/mlp")]
    uses = [f"{head}/{what}" for head in heads for what in ("output", "attention", "value")]
    return ["0/stream", *uses, *mlps]


def path_pieces(model: Model, trace: Trace, means: dict[str, Tensor]) -> Pieces:
    """Return the parts of the last layer's stream: the part common to all sequences,
    and one per path.

    The pieces have the rows of tokens; that of a start token is omitted.
    """
    h, tokens = trace[f"{_depth(model) - 1}/stream"], trace.tokens
    base = torch.zeros_like(h[:1])
    means = {name: mean.to(h) for name, mean in means.items()}
    pieces: Pieces = {"": (slice(None), base)}

    def put(path: str, name: str, deviation: Tensor, mean: Tensor) -> None:
        columns = _columns(model, name, h.shape[-1])
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
            )  # the live activations: a and v, a, v, neither
            put(f"{one}:attention", out, (both + a - v - none) / 2, none[:1])
            pieces[f"{one}:values"] = (pieces[f"{one}:attention"][0], (both - a + v - none) / 2)
        if f"{layer}/mlp" in means:
            put(
                f"{layer}/mlp",
                f"{layer}/mlp",
                trace[f"{layer}/mlp"] - means[f"{layer}/mlp"],
                means[f"{layer}/mlp"],
            )
    return {path: (columns, value[:, model.first :]) for path, (columns, value) in pieces.items()}


def _columns(model: Model, name: str, dim: int) -> slice:
    """Return the columns of the last layer's stream for a written value."""
    start, stop, _ = model.columns(name, _depth(model) - 1).indices(dim)
    return slice(start, stop)


def _depth(model: Model) -> int:
    return len(model.config.heads)
