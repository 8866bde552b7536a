r"""The disentangled transformer with relative positions.

Nothing is added up, and no weight depends on the length of a sequence.

    h^(0)_i    = e_{s_i}                                     one-hot token of S + 1 states, no position
    s_ij       = h_i^T A [h_j ; rho(i-j)]                    rho(o) = one-hot of min(o, R)
    hhat^(l,h) = sum_j a_ij [h_j ; rho(i-j)]                 a_i = Softmax over j <= i of s_ij / alpha
    h^(l)      = [h^(l-1), hhat^(l,1), ..., hhat^(l,H_l)]
    output     = h^(L) W_O^T

with h = h^(l-1) on the right and A = A^(l,h). A start token, state S, comes before
every sequence. Its row gives no prediction. Weights are read and written by the names
of blocks (`offset_blocks.py`). A key block may be "offset":

    model.block("1.1", "token", "offset")[:, 2] = -100.0     head 1.1 hardly attends to offset 2
    model.readout_block("3.1/token")[:, :5] = P.T            a part of W_O, one row per state
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.errors import check_memory, dtype_name
from sih.base.record import Size, make
from sih.base.types import Seed
from sih.models.base import Heads, Model, ModelConfig, ModelShape
from sih.models.disentangled.blocks import parse_head
from sih.models.fast import compiled
from sih.models.fast.by_offset import attention_by_offset, score_by_bucket, sum_by_bucket
from sih.models.fast.causal import mask_later
from sih.models.fast.choice import fastest
from sih.models.initial_weights import draw_uniform
from sih.models.relative.offset_blocks import OFFSET, OffsetBlocks, RelativeStream, relative_stream
from sih.models.sites import Site, layer_of


@dataclass(frozen=True)
class DisentangledRelativeShape(ModelShape):
    """The sizes of a disentangled transformer with relative positions to be trained."""

    kind: ClassVar[str] = "relative-disentangled"

    heads: Heads = (1, 1, 1)
    """Number of heads of each layer."""
    qk_dim: Size = 32
    """Its square root is the temperature of the attention, as if queries and keys had
    this width."""
    reach: Size | None = None
    """The first offset that shares its bucket with all larger ones. Default: the
    largest offset."""

    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        """Return a model of this shape. `qk_dim` sets the temperature."""
        reach = length if self.reach is None else self.reach
        alpha = math.sqrt(self.qk_dim)
        return DisentangledRelativeTransformer(
            num_states, reach, self.heads, temperature=alpha, init=init, rng=rng
        )


@dataclass(frozen=True, kw_only=True)
class DisentangledRelativeConfig(ModelConfig):
    """The shape of a disentangled transformer with relative positions."""

    length: int | None = field(init=False, default=None)
    heads: Heads
    """Number of heads of each layer."""
    reach: Size
    """R, the first offset that shares its bucket with all larger ones."""


class DisentangledRelativeTransformer(Model):
    r"""A disentangled transformer with relative positions, for sequences of any length.

    A head has the scores $h_i^\top \tilde A\, [h_j ; \rho(i-j)]$. It appends
    $\sum_j a_{ij} [h_j ; \rho(i-j)]$ to the stream, with $\rho(o)$ the one-hot of
    $\min(o, R)$. The last part, `l.h/offset`, is its attention by offset. A start token
    comes before every sequence, and activations have a row for it, the first.

    The backends (`paths`): "plain" evaluates the equations. "fused" computes the same
    numbers with less work. "compiled" does so with attention in C, and needs float32, a
    CPU and a C compiler.

    Args:
        num_states: tokens are 0 to num_states - 1; the start token is state num_states.
        reach: R, the first offset that shares its bucket with all larger ones.
        heads: number of heads of each layer.
        temperature: α, the divisor of scores: sqrt(32) in the paper's training, 1 in
            constructed weights.
        readout: the kind of output, "logit" or "probability".
        dtype: torch.float32 or torch.float64.
        init: "uniform", all weights in ±1/sqrt(columns), or "zeros", to be filled in by
            name.
        rng: a generator or a seed. Default: 0.

    >>> import sih
    >>> model = sih.DisentangledRelativeTransformer(num_states=5, reach=4, init="zeros")
    >>> model  # doctest: +NORMALIZE_WHITESPACE
    DisentangledRelativeTransformer(num_states=5, heads=(1, 1, 1), temperature=5.657, readout='logit',
        dtype='float32', reach=4, weights=2571)
    >>> model.block("3.1", "2.1/1.1/offset", "offset").shape
    torch.Size([5, 5])
    >>> model.predict(torch.zeros(1, 1000, dtype=torch.int64)).shape
    torch.Size([1, 1000, 5])
    """

    Config = DisentangledRelativeConfig
    Shape = DisentangledRelativeShape
    paths = ("compiled", "fused", "plain")
    scores_from_stream = False
    first = 1
    config: DisentangledRelativeConfig

    def __init__(
        self,
        num_states: int,
        reach: int,
        heads: Sequence[int] = (1, 1, 1),
        *,
        temperature: float = math.sqrt(32),
        readout: str = "logit",
        dtype: torch.dtype = torch.float32,
        init: str = "uniform",
        rng: Seed | None = None,
    ) -> None:
        sizes = {"num_states": num_states, "reach": reach, "heads": heads}
        form = {"temperature": temperature, "readout": readout, "dtype": dtype_name(dtype)}
        super().__init__(make(DisentangledRelativeConfig, {**sizes, **form}), init, rng)

    def make_weights(self, dtype: torch.dtype) -> None:
        config, buckets = self.config, self.config.reach + 1
        dims = [self.stream(layer).dim for layer in range(len(config.heads) + 1)]
        self.A = nn.ParameterList(
            nn.Parameter(torch.zeros(count, dim, dim + buckets, dtype=dtype))
            for count, dim in zip(config.heads, dims, strict=False)
        )
        self.readout = nn.Parameter(torch.zeros(config.num_states, dims[-1], dtype=dtype))

    def draw(self, init: str, rng: torch.Generator) -> None:
        """Fill each weight with uniform numbers, up to one over the root of its columns in size."""
        for weight in self.parameters():
            draw_uniform(weight, 1 / math.sqrt(weight.shape[-1]), rng)

    @classmethod
    def count_weights(cls, config: DisentangledRelativeConfig) -> int:
        buckets, dim, total = config.reach + 1, config.num_states + 1, 0
        for count in config.heads:
            total += count * dim * (dim + buckets)
            dim = (1 + count) * dim + count * buckets
        return total + config.num_states * dim

    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        h = site("0/stream", site("token", self._embedded(tokens)))
        for layer, heads in enumerate(self.A, 1):
            stream, outputs = self.stream(layer - 1), []
            for head, A in enumerate(heads, 1):
                name = f"{layer}.{head}"
                query, key, value = (site(f"{name}/{use}", h) for use in ("query", "key", "value"))
                q, r = (query @ A).split([stream.dim, self.config.reach + 1], dim=-1)
                scores = q @ key.mT + score_by_bucket(site(f"{name}/by_offset", r))
                scores = site(f"{name}/scores", mask_later(scores))
                attention = site(
                    f"{name}/attention", torch.softmax(scores / self.config.temperature, dim=-1)
                )
                offset = sum_by_bucket(attention, self.config.reach)
                output = site(f"{name}/output", torch.cat([attention @ value, offset], dim=-1))
                outputs.append(site.parts(f"{name}/output", output, self._parts(layer, name)))
            h = site(f"{layer}/stream", torch.cat([h, *outputs], dim=-1))
        return site("output", (h @ self.readout.T)[:, 1:])

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        """Return the output by attention with offsets.

        The readout is applied to the last layer's values first.
        """
        in_c = path == "compiled"
        if in_c:
            compiled.check_fits(self.readout)
        h = self._embedded(tokens)
        *earlier, last = self.A
        for heads in earlier:
            pairs = [self._attend(h, A, h, in_c) for A in heads]
            h = torch.cat([h, *(part for pair in pairs for part in pair)], dim=-1)
        dim = h.shape[-1]
        output = h @ self.readout[:, :dim].T
        for head, A in enumerate(last):
            copies, offsets = self._last_read(head, dim)
            found, u = self._attend(h, A, h @ copies.T, in_c)
            output = output + found + u @ offsets.T
        return output[:, 1:]

    def _attend(
        self, h: Float[Tensor, "batch row dim"], A: Tensor, v: Tensor, in_c: bool
    ) -> tuple[Float[Tensor, "batch row _"], Float[Tensor, "batch row bucket"]]:
        """Return a head's weighted sum of the values v, and its attention by offset."""
        dim, temperature = h.shape[-1], self.config.temperature
        q, r = (h @ (A / temperature)).split([dim, self.config.reach + 1], dim=-1)
        qkv = torch.cat([q, h, v], dim=-1)
        found, u = attention_by_offset(qkv, r.flip(-1), 1, dim, compiled=in_c)
        return found, u.flip(-1)

    def usual_path(self) -> str:
        return "compiled" if compiled.fits(self.readout) and fastest().compiled else "fused"

    def stream(self, layer: int) -> RelativeStream:
        """Return the blocks after this number of layers.

        0 is the input of layer 1, and `len(heads)` the input of the readout.

        >>> DisentangledRelativeTransformer(num_states=2, reach=3, heads=(1,)).stream(1).names
        ('token', '1.1/token', '1.1/offset')
        """
        config = self.config
        return relative_stream(config.num_states, config.reach, config.heads[:layer])

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]:
        """Return the part of a head's matrix between two blocks of its stream.

        The key block may also be "offset". It is a view of the weights: write into it
        to set them.

        >>> model = DisentangledRelativeTransformer(num_states=5, reach=4, init="zeros")
        >>> model.block("2.1", "1.1/offset", "token").shape
        torch.Size([5, 6])
        """
        layer, index = parse_head(head, self.config.heads)
        stream = self.stream(layer)
        A: Tensor = self.A[layer].detach()[index]
        return A[stream[query], slice(stream.dim, None) if key == OFFSET else stream[key]]

    def readout_block(self, name: str) -> Float[Tensor, "state block"]:
        """Return the part of W_O that reads one block of the last stream.

        It is a view of the weights: write into it to set them.

        >>> model = DisentangledRelativeTransformer(num_states=5, reach=4, init="zeros")
        >>> model.readout_block("3.1/token").shape
        torch.Size([5, 6])
        """
        return self.readout.detach()[:, self.stream(len(self.config.heads))[name]]

    def written_blocks(self) -> OffsetBlocks:
        """Return the non-zero blocks.

        >>> model = DisentangledRelativeTransformer(num_states=5, reach=4, init="zeros")
        >>> _ = model.block("1.1", "token", "offset").fill_(1.0)
        >>> model.written_blocks().A["1.1"].keys()
        dict_keys([('token', 'offset')])
        """
        config = self.config
        sizes = (config.num_states, config.reach, config.heads)
        found = OffsetBlocks(*sizes, config.temperature, self.readout.dtype)
        for head, blocks in found.A.items():
            names = self.stream(parse_head(head, config.heads)[0]).names
            for query, key in itertools.product(names, (*names, OFFSET)):
                if (A := self.block(head, query, key)).any():
                    blocks[query, key] = A
        for name in self.stream(len(config.heads)).names:
            if (W := self.readout_block(name)).any():
                found.readout[name] = W
        return found

    def writers(self, layers: int) -> tuple[str, ...]:
        """Return the names of the blocks after this number of layers.

        >>> DisentangledRelativeTransformer(num_states=2, reach=3, heads=(1,)).writers(0)
        ('token',)
        """
        return self.stream(layers).names

    def columns(self, name: str, layers: int) -> slice:
        """Return the columns of a block, of all blocks that a head writes, or of
        `0/stream`.

        >>> DisentangledRelativeTransformer(num_states=2, reach=3, heads=(1,)).columns("1.1/output", 1)
        slice(3, 10, None)
        """
        stream = self.stream(layers)
        head, _, rest = name.partition("/")
        if name == "0/stream":
            return slice(0, self.stream(0).dim)
        if rest != "output":
            return stream[name]
        start = stream[f"{head}/token"].start
        return slice(start, start + self.stream(layer_of(name) - 1).dim + self.config.reach + 1)

    def scores(
        self,
        head: str,
        query: Float[Tensor, "query dim"],
        key: Float[Tensor, "key dim"],
        offset: int,
    ) -> Float[Tensor, "query key"]:
        """Return a head's scores, before the temperature, of keys `offset` positions
        before queries.

        >>> model = DisentangledRelativeTransformer(num_states=2, reach=3, heads=(1,), rng=0)
        >>> h = torch.eye(3)
        >>> far, farther = (model.scores("1.1", h, h, offset) for offset in (3, 50))
        >>> torch.equal(far, farther)
        True
        """
        layer, index = parse_head(head, self.config.heads)
        A: Tensor = self.A[layer].detach()[index]
        read, dim = query @ A, self.stream(layer).dim
        return read[:, :dim] @ key.mT + read[:, dim + min(offset, self.config.reach), None]

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "_ _"]]:
        """Return a head's scores between two tokens, and between a token and an offset,
        0 to reach.

        The start token is the last row and column.

        >>> model = DisentangledRelativeTransformer(num_states=5, reach=4, init="zeros")
        >>> {name: tuple(table.shape) for name, table in model.direct_scores("1.1").items()}
        {'token': (6, 6), 'offset': (6, 5)}
        """
        return {name: self.block(head, "token", name) for name in ("token", OFFSET)}

    def _embedded(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch row dim"]:
        """Return the one-hot tokens, after the start token."""
        batch, rows = len(tokens), tokens.shape[1] + 1
        if not torch.compiler.is_compiling():
            numbers = batch * rows * rows * sum(self.config.heads)
            what = f"the attention of {batch:,} sequences of {rows:,} tokens"
            check_memory(self.readout.element_size() * numbers, what)
        states = self.config.num_states
        started = nn.functional.pad(tokens, (1, 0), value=states)
        return torch.eye(states + 1, dtype=self.readout.dtype, device=tokens.device)[started]

    def _parts(self, layer: int, head: str) -> dict[str, slice]:
        """Return the columns of a head's output for each block that it writes."""
        stream = self.stream(layer - 1)
        copies = {f"{head}/{name}": stream[name] for name in stream.names}
        return {**copies, f"{head}/{OFFSET}": slice(stream.dim, None)}

    def _last_read(self, head: int, dim: int) -> tuple[Tensor, Tensor]:
        """Return W_O's columns for the copies of a last-layer head, and for its
        attention by offset.
        """
        wide = dim + self.config.reach + 1
        own = self.readout[:, dim + head * wide : dim + (head + 1) * wide]
        return own[:, :dim], own[:, dim:]
