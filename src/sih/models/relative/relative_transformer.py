r"""The transformer with relative positions (Shaw et al. 2018).

There is no position in the stream, no MLP and no normalisation.

    h^(0)_i  = E[s_i]                                     the token alone
    s_ij     = q_i . (k_j + a_K[b]) / sqrt(qk_dim)        b = min(i - j, reach)
    h^(l)_i  = h_i + sum_h sum_j p_ij (v_j + a_V[b])      p_i = Softmax over j <= i of s_ij
    output   = h^(L) W_O^T

with h = h^(l-1) on the right, and q = h Q, k = h K, v = h V for each head.

Each head has reach + 1 vectors a_K and as many a_V: offsets of `reach` and more share
the last one. `offsets` is one setting per layer: "both", only "keys" (no a_V), "none",
or "rotary" queries and keys instead (no vectors).

Weights do not depend on the length of a sequence, and sequences of any length are
accepted. With `start` the model puts a start token before the sequence, state S of
S + 1. Its row gives no prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.errors import FieldError, check_memory, check_sizes, dtype_name
from sih.base.record import Among, OneOrMore, Size, make
from sih.base.types import Seed
from sih.models.base import Heads, Model, ModelConfig, ModelShape
from sih.models.fast import compiled
from sih.models.fast.by_offset import score_by_bucket, sum_by_bucket
from sih.models.fast.causal import mask_later
from sih.models.fast.choice import fastest
from sih.models.initial_weights import draw_normal, draw_uniform
from sih.models.relative import fast_pass
from sih.models.relative.relative_layer import OFFSETS, RelativeLayer, offsets_by_layer
from sih.models.relative.rotary import rotate
from sih.models.sites import Site, Trace


@dataclass(frozen=True)
class RelativeShape(ModelShape):
    """The sizes of a transformer with relative positions to be trained."""

    kind: ClassVar[str] = "relative"

    heads: Heads = (1, 1, 1)
    """Number of heads of each layer."""
    dim: Size = 64
    """Width of the residual stream."""
    qk_dim: Size = 32
    """Width of queries and keys; its square root is the temperature of the
    attention."""
    reach: Size | None = None
    """The first offset that shares its vectors with all larger ones. Default: the
    largest offset."""
    offsets: Annotated[tuple[Annotated[str, Among(OFFSETS)], ...], OneOrMore()] = ("both",)
    """Vectors that depend on the offset: both, keys, none or rotary; one word, or one
    per layer."""
    start: bool = False
    """Put a start token before each sequence."""

    def __post_init__(self) -> None:
        super().__post_init__()
        words = offsets_by_layer(self.offsets, len(self.heads))
        if "rotary" in words and self.qk_dim % 2:
            says = "rotary turns pairs of coordinates, so that qk_dim is even, e.g. 32"
            raise FieldError("qk_dim", f"{says}; got {self.qk_dim}")
        object.__setattr__(self, "offsets", words[:1] if len(set(words)) == 1 else words)

    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        """Return a model of this shape.

        By default `reach` separates all offsets of a sequence of this length.
        """
        largest = length - 1 + int(self.start)
        sizes = {**asdict(self), "reach": largest if self.reach is None else self.reach}
        return RelativeTransformer(num_states, **sizes, init=init, rng=rng)


@dataclass(frozen=True, kw_only=True)
class RelativeConfig(RelativeShape, ModelConfig):
    """Everything that shapes a transformer with relative positions, except its
    weights.
    """

    length: int | None = field(init=False, default=None)
    reach: Size
    """The first offset that shares its vectors with all larger ones."""

    def __post_init__(self) -> None:
        super().__post_init__()
        words = offsets_by_layer(self.offsets, len(self.heads))
        object.__setattr__(self, "offsets", words)  # one for each layer


class RelativeTransformer(Model):
    r"""A transformer with relative positions, for sequences of any length.

    Heads add a vector for the offset to each key and to each value:
    $s_{ij} = q_i \cdot (k_j + a^K_b) / \sqrt{d_{QK}}$ and $\sum_j p_{ij} (v_j + a^V_b)$
    with $b = \min(i - j, R)$. There are no positions in the stream, no MLP and no
    normalisation.

    The backends (`paths`): "plain" evaluates the equations, "fused" computes the same
    numbers with less work, and "compiled" does so with attention in C. The last needs
    float32, a CPU and a C compiler.

    Args:
        num_states: tokens are 0 to num_states - 1.
        reach: R, the first offset that shares its vectors with all larger ones, so that
            a head has R + 1 of each.
        dim: width of the residual stream.
        qk_dim: width of queries and keys.
        heads: number of heads of each layer.
        offsets: "both" for relative keys and values, "keys" for keys alone, "none", or
            "rotary" for rotated queries and keys; one word, or one for each layer.
        start: put a start token before each sequence. Activations then have a row for
            it, the first.
        temperature: the divisor of scores. Default: sqrt(qk_dim).
        readout: the kind of output, "logit" or "probability".
        dtype: torch.float32 or torch.float64.
        init: "uniform" draws embeddings and relative vectors from N(0, 1) and every
            other weight from ±1/sqrt(its inputs); "normal" is N(0, 1/dim) for
            everything; "zeros".
        rng: a generator or a seed. Default: 0.

    >>> import sih
    >>> model = sih.RelativeTransformer(num_states=5, reach=16)
    >>> model  # doctest: +NORMALIZE_WHITESPACE
    RelativeTransformer(num_states=5, heads=(1, 1, 1), temperature=5.657, readout='logit', dtype='float32',
        dim=64, qk_dim=32, reach=16, offsets=('both', 'both', 'both'), start=False, weights=30_112)
    >>> model.predict(torch.zeros(1, 1000, dtype=torch.int64)).shape
    torch.Size([1, 1000, 5])
    >>> model.trace(torch.zeros(2, 40, dtype=torch.int64))["1.1/offset"].shape  # attention by offset 0 .. 16
    torch.Size([2, 40, 17])
    """

    Config = RelativeConfig
    Shape = RelativeShape
    draws = ("uniform", "normal")
    paths = ("compiled", "fused", "plain")
    scores_from_stream = False
    config: RelativeConfig

    def __init__(
        self,
        num_states: int,
        reach: int,
        dim: int = 64,
        qk_dim: int = 32,
        heads: Sequence[int] = (1, 1, 1),
        *,
        offsets: str | Sequence[str] = "both",
        start: bool = False,
        temperature: float | None = None,
        readout: str = "logit",
        dtype: torch.dtype = torch.float32,
        init: str = "uniform",
        rng: Seed | None = None,
    ) -> None:
        check_sizes(qk_dim=qk_dim)
        alpha = math.sqrt(qk_dim) if temperature is None else temperature
        sizes = {"num_states": num_states, "heads": heads, "dim": dim, "qk_dim": qk_dim}
        sizes |= {"reach": reach, "offsets": offsets, "start": start}
        form = {"temperature": alpha, "readout": readout, "dtype": dtype_name(dtype)}
        super().__init__(make(RelativeConfig, {**sizes, **form}), init, rng)

    def make_weights(self, dtype: torch.dtype) -> None:
        config, dim = self.config, self.config.dim
        self.first = int(config.start)
        self.token = nn.Parameter(torch.zeros(config.num_states + self.first, dim, dtype=dtype))
        sizes = (dim, config.qk_dim, config.reach)
        pairs = zip(config.heads, config.offsets, strict=True)
        self.layers = nn.ModuleList(RelativeLayer(n, *sizes, word, dtype) for n, word in pairs)
        self.readout = nn.Parameter(torch.zeros(config.num_states, dim, dtype=dtype))

    @classmethod
    def count_weights(cls, config: RelativeConfig) -> int:
        total = (2 * config.num_states + int(config.start)) * config.dim
        for heads, word in zip(config.heads, config.offsets, strict=True):
            vectors = {"both": config.qk_dim + config.dim, "keys": config.qk_dim}.get(word, 0)
            total += heads * (
                config.dim * (2 * config.qk_dim + config.dim) + (config.reach + 1) * vectors
            )
        return total

    def draw(self, init: str, rng: torch.Generator) -> None:
        """Draw token, readout, then every layer's Q, every layer's K, and so on.

        Runs on disk depend on this order.
        """
        bound = 1 / math.sqrt(self.config.dim)
        named = dict(self.named_parameters())
        uses = ["token", "readout", "Q", "K", "V", "aK", "aV"]
        for name in sorted(named, key=lambda name: uses.index(name.rpartition(".")[2])):
            weight = named[name]
            if init == "normal":
                draw_normal(weight, bound, rng)
            elif name == "token" or name.endswith((".aK", ".aV")):
                draw_normal(weight, 1, rng)
            else:
                draw_uniform(weight, bound, rng)

    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        tokens = self._started(tokens)
        self._check_maps(tokens)
        h = site("0/stream", site("token", self.token[tokens]))
        for number, layer in enumerate(self.each_layer(), 1):
            outputs = []
            for head in range(len(layer.Q)):
                site_of_head = partial(_see, site, f"{number}.{head + 1}")
                outputs.append(self._head(layer, head, site_of_head, h))
            h = site(f"{number}/stream", h + sum(outputs))
        return site("output", (h @ self.readout.T)[:, self.first :])

    def _head(
        self,
        layer: RelativeLayer,
        head: int,
        site: Callable[[str, Tensor], Tensor],
        h: Float[Tensor, "batch row dim"],
    ) -> Float[Tensor, "batch row dim"]:
        """Return the output of one head."""
        query, key, value = (site(use, h) for use in ("query", "key", "value"))
        q, k, v = query @ layer.Q[head], key @ layer.K[head], value @ layer.V[head]
        if layer.rotary:
            q, k = rotate(q), rotate(k)
        scores = q @ k.mT
        if layer.aK is not None:
            scores = scores + score_by_bucket(site("by_offset", q @ layer.aK[head].T))
        scores = site("scores", mask_later(scores))
        attention = site("attention", torch.softmax(scores / self.config.temperature, dim=-1))
        output = attention @ v
        if layer.aV is not None:
            output = (
                output
                + site("offset", sum_by_bucket(attention, self.config.reach)) @ layer.aV[head]
            )
        return site("output", output)

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        in_c = path == "compiled"
        if in_c:
            compiled.check_fits(self.readout)
        tokens = self._started(tokens)
        self._check_maps(tokens, kept=not in_c)
        layers, temperature = self.each_layer(), self.config.temperature
        return fast_pass.forward(tokens, self.token, layers, self.readout, temperature, in_c)[
            :, self.first :
        ]

    def usual_path(self) -> str:
        return "compiled" if compiled.fits(self.readout) and fastest().compiled else "fused"

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "_ _"]]:
        """Return a head's scores between two tokens, and between a token and an offset,
        0 to reach.

        With a start token, that is the last row and column. Rotary scores depend on
        token and offset at once, and are not in either table.

        >>> import sih
        >>> model = sih.RelativeTransformer(num_states=5, reach=16)
        >>> {name: tuple(table.shape) for name, table in model.direct_scores("1.1").items()}
        {'token': (5, 5), 'offset': (5, 17)}
        """
        number, index = (int(part) - 1 for part in head.split("."))
        layer = self.each_layer()[number]
        if layer.rotary:
            return {}
        q, k = self.token @ layer.Q[index], self.token @ layer.K[index]
        scores = {"token": q @ k.mT}
        return scores if layer.aK is None else {**scores, "offset": q @ layer.aK[index].mT}

    def contributions(self, trace: Trace) -> dict[str, Float[Tensor, "batch time state"]]:
        written = (
            name for name in trace.names if name.count("/") == 1 and name.endswith("/output")
        )
        return {
            name: (trace[name] @ self.readout.T)[:, self.first :] for name in ("token", *written)
        }

    def each_layer(self) -> list[RelativeLayer]:
        """Return the layers, each with its weights Q, K, V, aK, aV by head.

        >>> import sih
        >>> sih.RelativeTransformer(num_states=2, reach=4, dim=16, qk_dim=8).each_layer()[1].aK.shape
        torch.Size([1, 5, 8])
        """
        return [layer for layer in self.layers if isinstance(layer, RelativeLayer)]

    def _started(self, tokens: Int[Tensor, "batch time"]) -> Int[Tensor, "batch row"]:
        """Return the sequences, after the start token (state S) if the model has
        one.
        """
        return nn.functional.pad(tokens, (self.first, 0), value=self.config.num_states)

    def _check_maps(self, tokens: Int[Tensor, "batch row"], kept: bool = True) -> None:
        """Raise a ValueError if attention needs more memory than there is.

        No length is refused before. A pass keeps a map of rows and keys for each head
        or, in C, two tables of rows and offsets. A gradient in C makes two maps of one
        head of one sequence in each thread.
        """
        batch, rows = tokens.shape
        width = rows if kept else 2 * min(self.config.reach + 1, rows)
        numbers = batch * rows * width * sum(self.config.heads)
        if not kept and torch.is_grad_enabled():
            numbers += 2 * rows * rows * min(batch, torch.get_num_threads())
        if not torch.compiler.is_compiling():
            check_memory(
                self.readout.element_size() * numbers,
                f"the attention of {batch:,} sequences of {rows:,} tokens",
            )


def _see(site: Site, head: str, what: str, value: Tensor) -> Tensor:
    return site(f"{head}/{what}", value)
