r"""Exact decomposition of the last layer's evidence for the lags into paths, with
shares that add up to 1.

At query i lag k copies the key $j = i - k + 1$. Softmax depends on the differences of
these candidates' scores. Their part that varies with the data is the evidence:
$x_{i,k}$ minus its mean over k, minus its mean over sequences. A score that is a sum of
parts gives each the share $\mathrm{Cov}(part, sum) / \mathrm{Var}(sum)$, over queries
max_lag .. length - 2 and all candidates, so that shares add up to 1. Several heads of a
last layer are pooled.

- **By blocks** (a stream of blocks): the parts are $h_i[a]^\top A_{a,b}\, h_j[b]$, for
  each pair of blocks.
- **By paths** (any model whose stream is a sum, or of blocks): the stream is
  $m + \sum_c d_c$, m the same for all sequences, $d_c$ the part from path c. As scores
  are bilinear, $h_i M h_j - m_i M m_j = \sum_c [d_{c,i} M u_j + u_i M d_{c,j}]$ with
  $u = (m + h)/2$: each product of two deviations is split evenly. The paths are token
  and position ("embedding"), each head of layer 1 ("1.1"), and for each later head its
  attention pattern and its values: $a v - \bar a \bar v = (a - \bar a)\frac{v + \bar
  v}2 + \frac{a + \bar a}2 (v - \bar v)$ ("2.1:attention": its pattern, "2.1:values":
  its values).

Scores may depend on the offset i - j of a key: each lag then has an M of its own, that
of its candidates' offset k - 1. A score that is affine in the stream
($h_i M h_j + r \cdot h_i$, where a vector is added to keys) is bilinear in the stream
with a 1 behind it, which is common to all sequences.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.interventions import CHUNK, mean_values
from sih.base.errors import FieldError, described
from sih.base.showing import Drawn
from sih.beyond.evidence_paths.stream_pieces import (
    ONE,
    Forms,
    Pieces,
    Read,
    averaged,
    block_pieces,
    in_blocks,
    last_stream,
    path_pieces,
    score_forms,
)
from sih.models.base import Model, check_model
from sih.models.offsets import attention_at
from sih.task import Batch, CausalTask, Lagged, check_batch, check_task

Part = str | tuple[str, str]
"""A path, or the block at the query and the block at the key."""
CHANNELS = ("looked", "looked x carried", "carried", "direct", "embedding")
GROUPS = 8
"""Groups of sequences, whose differences give the shares' errors."""
TOLERANCE = 1e-3
"""Largest relative difference between the sum of the parts and the score, or the
activation that is read."""
CONSTANT = 64
"""A block counts as constant if its entries vary by at most this many units in the last
place among sequences."""


@dataclass(frozen=True)
class EvidenceFlow(Drawn):
    """Share of the evidence in the last layer's scores for each part, with its standard
    error.
    """

    drawing = "sih.beyond.evidence_paths.evidence_flow_figure:draw_evidence_flow"

    shares: dict[Part, float]
    errors: dict[Part, float]
    channels: dict[str, float]
    """Shares by path, in `CHANNELS`. "looked": attention patterns of layers 2 and up.
    "carried": values that these layers copy. "direct": outputs of layer 1, read
    directly. "embedding": tokens and positions. A pair of blocks may be "looked x
    carried"."""
    channel_errors: dict[str, float]
    spread: float
    """Standard deviation of the evidence, in units of the score."""
    mismatch: float
    """The largest difference between the sum of the parts and the score, in the same
    units: rounding."""

    def _facts(self) -> Mapping[str, Any]:
        channels = {
            name.replace(" ", "_"): round(share, 2) for name, share in self.channels.items()
        }
        return {**channels, "parts": len(self.shares), "spread": self.spread}

    def table(self) -> list[list[str]]:
        """Return a header and a row of text for each part, that of the largest share first."""
        rows = [["by", "share", "error"]]
        largest_first = sorted(self.shares.items(), key=lambda item: -abs(item[1]))
        for part, share in largest_first:
            name = part if isinstance(part, str) else " | ".join(part)
            rows.append([name, f"{share:.3f}", f"{self.errors[part]:.3f}"])
        return rows


@torch.no_grad()
def evidence_flow(
    model: Model, task: CausalTask, batch: Batch, by: Literal["blocks", "paths"] | None = None
) -> EvidenceFlow:
    """Return the share of each path in the evidence for the lags, in the last layer's
    scores. Shares add up to 1.

    Args:
        model: A model with attention, with a stream that is a sum or blocks.
        task: The task that the sequences were drawn from.
        batch: The sequences.
        by: "blocks" or "paths". Default: "blocks" for a stream of blocks, otherwise
            "paths".

    Returns:
        Shares by part and by channel, with standard errors.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2, 3), length=32)
    >>> model, batch = sih.construct(task), sih.sample(task, size=16, rng=0)
    >>> round(sih.evidence_flow(model, task, batch).channels["carried"], 3)  # all of it, as it was built
    1.0
    """
    check_model(model)
    check_task(task, Lagged)
    assert isinstance(task, Lagged)
    check_batch(batch)
    known = by is None or (isinstance(by, str) and by in ("blocks", "paths"))
    if not known or (by == "blocks" and not in_blocks(model)):
        raise FieldError(
            "by", f"by is 'paths', or 'blocks' for a disentangled model; got {described(by)}"
        )
    if not model.config.heads:
        raise ValueError("a model without attention has no scores that evidence could reach")
    (count, time), lags = batch.tokens.shape, task.lags
    if len(lags) < 2 or count < 2 or time < task.max_lag + 2:
        needs = f"two lags, two sequences and {task.max_lag + 2} positions"
        raise ValueError(f"evidence needs {needs} at least; got {len(lags)}, {count} and {time}")
    last, varying, counted = len(model.config.heads), set[str](), slice(task.max_lag, -1)
    by_blocks = in_blocks(model) and by != "paths"
    means = {} if by_blocks else mean_values(model, batch, averaged(model))
    sums = {head: _Sums() for head in range(1, model.config.heads[-1] + 1)}
    offsets = [lag - 1 for lag in lags]
    forms = {head: score_forms(model, f"{last}.{head}", offsets) for head in sums}
    for tokens in batch.tokens.split(min(CHUNK, -(-count // GROUPS))):
        trace = model.trace(tokens)
        h = last_stream(model, trace)
        pieces = block_pieces(model, trace) if by_blocks else path_pieces(model, trace, means)
        for head, total in sums.items():
            found = products(pieces, forms[head], h, task, mirrored=not by_blocks)
            scores = trace[f"{last}.{head}/scores"][:, model.first :, model.first :]
            total.add(
                {part: value[:, counted] for part, value in found},
                candidates(scores, task)[:, counted].double(),
            )
        if by_blocks:
            varying |= {name for name, (_, x) in pieces.items() if _varies(x)}
    return _flow(list(sums.values()), varying)


def products(
    pieces: Pieces,
    forms: Forms,
    h: Float[Tensor, "batch time dim"],
    task: Lagged,
    mirrored: bool,
) -> Iterator[tuple[Part, Float[Tensor, "#batch time lag"]]]:
    """Return the parts of the score at the candidates: of each pair of pieces, or of
    each piece with u on the other side.
    """
    if not mirrored:
        yield from _of_pairs(pieces, forms, h, task)
        return
    base, whole = forms.completed(pieces[""][1]), forms.completed(h)
    u = (base + whole) / 2
    reads = forms.read(u)
    yield "", _dots(forms.read(base), base, task)
    for name, (columns, d) in pieces.items():
        if name:
            at_query = _dots(forms.read(d, columns), u, task)
            yield name, at_query + _dots(reads, d, task, columns)


def _of_pairs(
    pieces: Pieces, forms: Forms, h: Float[Tensor, "batch time dim"], task: Lagged
) -> Iterator[tuple[Part, Float[Tensor, "#batch time lag"]]]:
    """Return the part of each two blocks, and of blocks with the 1 if scores are
    affine.
    """
    if forms.affine:
        last = slice(h.shape[-1], None)
        pieces = {**pieces, ONE: (last, forms.completed(h)[..., last])}
    for query, (rows, x) in pieces.items():
        reads = forms.read(x, rows)
        for key, (columns, y) in pieces.items():
            yield (query, key), _dots(reads, y, task, columns)


def _dots(
    reads: Sequence[Read],
    key: Float[Tensor, "#batch time width"],
    task: Lagged,
    columns: slice = slice(None),
) -> Float[Tensor, "#batch time lag"]:
    """Return query_i . key_j at the candidates j = i - k + 1, and 0 if there is no such
    key.
    """
    batch, time = max(len(reads[0][0]), len(key)), key.shape[1]
    out = torch.zeros(batch, time, len(task.lags), dtype=torch.float64)
    for query, which in reads:
        for index in which:
            k = task.lags[index]
            pairs = query[:, k - 1 :, columns] * key[:, : time - k + 1]
            out[:, k - 1 :, index] = pairs.sum(dim=-1, dtype=torch.float64)
    return out


def candidates(
    scores: Float[Tensor, "*batch time time"], task: Lagged
) -> Float[Tensor, "*batch time lag"]:
    """Return the scores at the candidates, and 0 if there is no such key."""
    return attention_at(scores, [lag - 1 for lag in task.lags])


@dataclass
class _Sums:
    """Sums of a head's parts by group, relative to the first sequence, so that large
    constants cost no digits.
    """

    parts: tuple[Part, ...] = ()
    first: Tensor | None = None
    groups: list[tuple[int, Tensor, Tensor]] = field(default_factory=list)
    """For each group its size, the sum of the parts over sequences, and their products
    with the whole."""
    mismatch: float = 0.0
    largest: float = 0.0

    def add(self, found: dict[Part, Tensor], score: Float[Tensor, "batch query lag"]) -> None:
        x = torch.stack([apart(one.expand_as(score)) for one in found.values()])
        self.mismatch = max(self.mismatch, (x.sum(dim=0) - apart(score)).abs().max().item())
        self.largest = max(self.largest, x.abs().max().item())
        self.parts = tuple(found)
        self.first = x[:, :1].clone() if self.first is None else self.first
        x -= self.first
        self.groups.append((x.shape[1], x.sum(dim=1), torch.einsum("pbik,bik->p", x, x.sum(dim=0))))

    def covariances(self) -> tuple[Float[Tensor, "group part"], int]:
        """Return each group's sum of (part - mean)(whole - mean), and the total number
        of terms.
        """
        count = sum(size for size, _, _ in self.groups)
        mean = sum((total for _, total, _ in self.groups), torch.zeros(())) / count
        whole = mean.sum(dim=0)
        rows = []
        for size, total, product in self.groups:
            crossed = (mean * total.sum(dim=0) + total * whole - size * mean * whole).sum(
                dim=(1, 2)
            )
            rows.append(product - crossed)
        return torch.stack(rows), count * whole.numel()


def _flow(heads: Sequence[_Sums], varying: set[str]) -> EvidenceFlow:
    mismatch, largest = max(one.mismatch for one in heads), max(one.largest for one in heads)
    if mismatch > TOLERANCE * largest:
        raise ValueError(
            f"the parts miss the last layer's scores by {mismatch:.2g}: evidence_flow needs a stream that is the sum "
            "of what heads write, or is disentangled, and scores that are bilinear in it at each offset"
        )
    covariances, counts = zip(*(one.covariances() for one in heads), strict=True)
    found = torch.stack(covariances).sum(dim=0)  # group part
    variance = found.sum()
    if not variance > 0:
        raise ValueError(
            "the last layer's scores of the candidates are the same for all sequences: there is no evidence"
        )
    names = [_channel(part, varying) for part in heads[0].parts]
    groups = {part: found[:, [index]] for index, part in enumerate(heads[0].parts) if part}
    channels = {
        name: found[:, [index for index, one in enumerate(names) if one == name]]
        for name in CHANNELS
        if name in names
    }
    shares, errors = _shares(groups, found)
    by_channel, channel_errors = _shares(channels, found)
    spread = math.sqrt(variance.item() / sum(counts))
    return EvidenceFlow(shares, errors, by_channel, channel_errors, spread, mismatch)


def _shares(
    groups: dict[Any, Tensor], found: Float[Tensor, "group part"]
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the sums of some parts divided by the whole, with errors from the groups'
    quotients.
    """
    each, variance, shares, errors = found.sum(dim=1), found.sum(), {}, {}
    for name, parts in groups.items():
        share = parts.sum() / variance
        apart = parts.sum(dim=1) - share * each
        shares[name] = share.item()
        errors[name] = (
            apart.square().sum() * len(each) / max(len(each) - 1, 1)
        ).sqrt().item() / variance.item()
    return shares, errors


def _channel(part: Part, varying: set[str]) -> str:
    """Return the channel of a path, or of the two blocks of a pair that contain data."""
    if isinstance(part, str):
        ends = {":attention": "looked", ":values": "carried"}
        straight = "embedding" if part == "embedding" else "direct"
        return next((name for end, name in ends.items() if part.endswith(end)), straight)
    kinds = {_block_kind(block) for block in part if block in varying}
    if "direct" in kinds:
        return "direct"
    if {"looked", "carried"} <= kinds:
        return "looked x carried"
    return next((kind for kind in ("looked", "carried") if kind in kinds), "embedding")


def _block_kind(block: str) -> str:
    heads = block.split("/")[:-1]
    if not heads:
        return "embedding"
    if len(heads) > 1:
        return "carried"
    return "direct" if heads[0].startswith("1.") else "looked"


def _varies(x: Float[Tensor, "batch time dim"]) -> bool:
    return bool(((x - x[:1]).abs() > CONSTANT * torch.finfo(x.dtype).eps * x.abs()).any())


def apart(values: Float[Tensor, "*rows lag"]) -> Float[Tensor, "*rows lag"]:
    """Return scores minus the mean over candidates, which softmax ignores."""
    return values - values.mean(dim=-1, keepdim=True)
