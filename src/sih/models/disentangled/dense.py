r"""The disentangled transformer (paper, Sec. 3), which concatenates instead of adding.

    h^(0)_i   = [e_{s_i}, e_i]                                 one-hot token, one-hot position
    hhat^(l,h) = Softmax(M(h A^(l,h) h^T); alpha) h             h = h^(l-1), a row for each position
    h^(l)      = [h^(l-1), hhat^(l,1), ..., hhat^(l,H_l)]
    output     = h^(L) W_O^T

with M the causal mask and alpha the temperature. `A^(l,h)[r, c]` weighs coordinate r of
the query against coordinate c of the key. Weights are read and written by the names of
the blocks (see `sih.models.disentangled.blocks`):

    model.block("1.1", "token", "token").copy_(log_P.T)         a part of A^(1,1), query block then key block
    model.readout_block("3.1/token").copy_(P.T)                 a part of W_O, one row per state

Weights must be finite. (0 times infinity is no number, and the dense equations multiply
by many zeros.) For log 0 write a finite number with an exponential of 0: -1e4 is low
enough in float32 and in float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.errors import dtype_name
from sih.base.record import Size, make
from sih.base.types import Seed
from sih.models.base import BoundedConfig, Heads, Model, ModelShape
from sih.models.disentangled import structured, written
from sih.models.disentangled.blocks import ResidualStream, parse_head, stream_after
from sih.models.disentangled.lazy_trace import LazyValues
from sih.models.disentangled.written import WrittenBlocks
from sih.models.fast.causal import mask_later
from sih.models.initial_weights import draw_uniform
from sih.models.sites import Site, Trace, layer_of


@dataclass(frozen=True)
class DisentangledShape(ModelShape):
    """The sizes of a disentangled transformer to be trained. Defaults: the paper's."""

    kind: ClassVar[str] = "disentangled"

    heads: Heads = (1, 3, 1)
    """Number of heads of each layer."""
    qk_dim: Size = 32
    """Its square root is the temperature of the attention, as if queries and keys had
    this width."""

    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        """Return a model of this shape. `qk_dim` sets the temperature."""
        alpha = math.sqrt(self.qk_dim)
        return DisentangledTransformer(
            num_states, length, self.heads, temperature=alpha, init=init, rng=rng
        )


@dataclass(frozen=True)
class DisentangledConfig(BoundedConfig):
    """Everything that shapes a disentangled transformer, apart from its weights."""

    heads: Heads
    """Number of heads of each layer."""


class DisentangledTransformer(Model):
    r"""The paper's disentangled transformer, with any number of layers and heads.

    $h^{(l)} = [h^{(l-1)}, \hat h^{(l,1)}, \dots]$ with
    $\hat h^{(l,h)} = \mathrm{Softmax}(\mathcal M(h A^{(l,h)} h^\top); \alpha)\, h$.
    Nothing is added up, and weights are read and written by the names of blocks.

    The backends (`paths`): "dense" evaluates the equations. "structured" computes the
    same numbers with far less work. "written" computes them without gradients from the
    non-zero blocks alone, which are few in constructed weights. A trace of the latter
    two stores the attention and computes other activations on demand.

    Args:
        num_states: tokens are 0 to num_states - 1.
        length: the longest sequence.
        heads: number of heads of each layer.
        temperature: α, the divisor of scores: sqrt(32) in the paper's training, 1 in
            constructed weights.
        readout: the kind of output, "logit" or "probability".
        dtype: torch.float32 or torch.float64.
        init: "uniform", all weights in ±1/sqrt(columns), or "zeros", to be filled in by
            name.
        rng: a generator or a seed. Default: 0.

    >>> import sih
    >>> model = sih.DisentangledTransformer(num_states=2, length=16, heads=(1, 2, 1), init="zeros")
    >>> model  # doctest: +NORMALIZE_WHITESPACE
    DisentangledTransformer(num_states=2, length=16, heads=(1, 2, 1), temperature=5.657,
        readout='logit', dtype='float32', weights=15_012)
    >>> _ = model.readout_block("3.1/token").fill_(1.0)
    >>> model.written_blocks().readout.keys()
    dict_keys(['3.1/token'])
    """

    Config = DisentangledConfig
    Shape = DisentangledShape
    paths = ("structured", "written", "dense")
    large_products = True
    config: DisentangledConfig

    def __init__(
        self,
        num_states: int,
        length: int,
        heads: Sequence[int],
        *,
        temperature: float = math.sqrt(32),
        readout: str = "logit",
        dtype: torch.dtype = torch.float32,
        init: str = "uniform",
        rng: Seed | None = None,
    ) -> None:
        sizes = {"num_states": num_states, "length": length, "heads": heads}
        form = {"temperature": temperature, "readout": readout, "dtype": dtype_name(dtype)}
        super().__init__(make(DisentangledConfig, {**sizes, **form}), init, rng)

    def make_weights(self, dtype: torch.dtype) -> None:
        config = self.config
        dims = [self.stream(layer).dim for layer in range(len(config.heads) + 1)]
        self.A = nn.ParameterList(
            nn.Parameter(torch.zeros(count, dim, dim, dtype=dtype))  # head query key
            for count, dim in zip(config.heads, dims, strict=False)
        )
        self.readout = nn.Parameter(torch.zeros(config.num_states, dims[-1], dtype=dtype))

    def draw(self, init: str, rng: torch.Generator) -> None:
        """Fill each weight with uniform numbers, up to one over the root of its columns in size."""
        for weight in self.parameters():
            draw_uniform(weight, 1 / math.sqrt(weight.shape[-1]), rng)

    @classmethod
    def count_weights(cls, config: DisentangledConfig) -> int:
        dims = [config.num_states + config.length]
        for count in config.heads:
            dims.append(dims[-1] * (1 + count))
        return (
            sum(n * dim**2 for n, dim in zip(config.heads, dims, strict=False))
            + config.num_states * dims[-1]
        )

    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        batch, time = tokens.shape
        token = torch.eye(self.config.num_states, dtype=self.readout.dtype, device=tokens.device)[
            tokens
        ]
        position = torch.eye(time, self.config.length, dtype=token.dtype, device=tokens.device)
        h = torch.cat(
            [site("token", token), site("position", position.expand(batch, -1, -1))], dim=-1
        )
        h = site("0/stream", h)
        for layer, heads in enumerate(self.A, 1):
            stream, outputs = self.stream(layer - 1), []
            for head, A in enumerate(heads, 1):
                name = f"{layer}.{head}"
                query, key, value = (site(f"{name}/{use}", h) for use in ("query", "key", "value"))
                scores = site(f"{name}/scores", mask_later(query @ A @ key.mT))
                attention = site(
                    f"{name}/attention", torch.softmax(scores / self.config.temperature, dim=-1)
                )
                output = site(f"{name}/output", attention @ value)
                blocks = {f"{name}/{block}": stream[block] for block in stream.names}
                outputs.append(site.parts(f"{name}/output", output, blocks))
            h = site(f"{layer}/stream", torch.cat([h, *outputs], dim=-1))
        return site("output", h @ self.readout.T)

    def stream(self, layer: int) -> ResidualStream:
        """Return the blocks after this number of layers.

        0 is the input of layer 1, and `len(heads)` the input of the readout.

        >>> DisentangledTransformer(num_states=2, length=8, heads=(1,)).stream(1).names
        ('token', 'position', '1.1/token', '1.1/position')
        """
        return stream_after(self.config.num_states, self.config.length, self.config.heads[:layer])

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]:
        """Return the part of a head's matrix A between two blocks of its stream.

        It is a view of the weights: write into it to set them. `head` is
        `"layer.head"`.

        >>> model = DisentangledTransformer(num_states=5, length=10, heads=(1, 3, 1), init="zeros")
        >>> model.block("2.3", "position", "1.1/token").shape
        torch.Size([10, 5])
        """
        layer, index = parse_head(head, self.config.heads)
        stream = self.stream(layer)
        A: Tensor = self.A[layer].detach()[index]
        return A[stream[query], stream[key]]

    def writers(self, layers: int) -> tuple[str, ...]:
        """Return the names of the blocks after this number of layers.

        >>> DisentangledTransformer(num_states=2, length=8, heads=(1,)).writers(0)
        ('token', 'position')
        """
        return self.stream(layers).names

    def columns(self, name: str, layers: int) -> slice:
        """Return the columns of a block, of all blocks that a head writes, or of
        `0/stream`.

        >>> DisentangledTransformer(num_states=2, length=8, heads=(1,)).columns("1.1/token", 1)
        slice(10, 12, None)
        """
        stream = self.stream(layers)
        head, _, rest = name.partition("/")
        if name == "0/stream":
            return slice(0, self.stream(0).dim)
        if rest != "output":
            return stream[name]
        start = stream[f"{head}/token"].start
        return slice(start, start + self.stream(layer_of(name) - 1).dim)

    def scores(
        self,
        head: str,
        query: Float[Tensor, "query dim"],
        key: Float[Tensor, "key dim"],
        offset: int,
    ) -> Float[Tensor, "query key"]:
        """Return h^T A h of queries and keys, at any distance.

        >>> model = DisentangledTransformer(num_states=2, length=8, heads=(1,), rng=0)
        >>> h = torch.eye(10)
        >>> torch.equal(model.scores("1.1", h, h, offset=0), model.A[0][0])
        True
        """
        layer, index = parse_head(head, self.config.heads)
        A: Tensor = self.A[layer].detach()[index]
        return query @ A @ key.mT

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "query key"]]:
        return {name: self.block(head, name, name) for name in ("token", "position")}

    def readout_block(self, name: str) -> Float[Tensor, "state block"]:
        """Return the part of W_O that reads one block of the last stream.

        It is a view of the weights: write into it to set them.
        """
        return self.readout.detach()[:, self.stream(len(self.config.heads))[name]]

    def written_blocks(self) -> WrittenBlocks:
        """Return the non-zero blocks."""
        config = self.config
        found = WrittenBlocks(
            config.num_states, config.length, config.heads, config.temperature, self.readout.dtype
        )
        for head, blocks in found.A.items():
            names = self.stream(parse_head(head, config.heads)[0]).names
            for query, key in itertools.product(names, names):
                if (A := self.block(head, query, key)).any():
                    blocks[query, key] = A
        for name in self.stream(len(config.heads)).names:
            if (W := self.readout_block(name)).any():
                found.readout[name] = W
        return found

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        return self._written(tokens).output if path == "written" else self._structured(tokens)[0]

    def named_values(self, tokens: Int[Tensor, "batch time"], path: str) -> Mapping[str, Tensor]:
        if path == "dense":
            return super().named_values(tokens, path)
        if path == "written":
            return self._written(tokens).values
        output, layers = self._structured(tokens)
        known = {"output": output}
        for layer, heads in enumerate(layers, 1):
            known |= {
                f"{layer}.{head}/attention": structured.whole(rows)
                for head, rows in enumerate(heads, 1)
            }
        A = tuple(self.A) if torch.is_grad_enabled() else tuple(heads.detach() for heads in self.A)
        return LazyValues(tokens, self.config.length, self.config.heads, known, A)

    def _written(self, tokens: Int[Tensor, "batch time"]) -> Trace:
        if torch.is_grad_enabled() and any(weight.requires_grad for weight in self.parameters()):
            raise ValueError(
                "path 'written' does not support gradients; call it inside torch.no_grad(), "
                "or use path 'structured'"
            )
        return written.run(self.written_blocks(), tokens)

    def _structured(
        self, tokens: Int[Tensor, "batch time"]
    ) -> tuple[Tensor, list[list[structured.HeadAttention]]]:
        return structured.forward(
            tokens, tuple(self.A), self.readout, self.config.length, self.config.temperature
        )
