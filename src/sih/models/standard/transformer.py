r"""The standard transformer (paper, Sec. 3), with optional MLPs.

It has attention and a residual sum, but no biases and no normalisation.

    h^(0)_i  = E[s_i] + F[i]                                                     learned token and position
    htilde   = h + sum_h Softmax(M(h Q^(l,h) K^(l,h)^T h^T); alpha) h V^(l,h)    h = h^(l-1), one row per position
    h^(l)    = htilde + sigma(htilde W_1^(l)) W_2^(l)^T                          only with MLPs; else htilde
    output   = h^(L) W_O^T

with M the causal mask and alpha the temperature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.errors import check_sizes, dtype_name
from sih.base.record import Among, Size, make
from sih.base.types import Seed
from sih.models.base import BoundedConfig, Heads, Model, ModelShape
from sih.models.fast import compiled
from sih.models.fast.causal import mask_later
from sih.models.fast.choice import fastest
from sih.models.initial_weights import draw_normal, draw_uniform
from sih.models.sites import Site, Trace
from sih.models.standard import fused
from sih.models.standard.layer import ACTIVATIONS, Layer


@dataclass(frozen=True)
class TransformerShape(ModelShape):
    """The sizes of a standard transformer to be trained, by default the paper's."""

    kind: ClassVar[str] = "standard"

    heads: Heads = (1, 3, 1)
    """Number of heads of each layer."""
    dim: Size = 64
    """Width of the residual stream."""
    qk_dim: Size = 32
    """Width of queries and keys; its square root is the temperature of the
    attention."""
    mlp_dim: Size | None = None
    """Width of an MLP after every attention layer. By default there is none."""

    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        return Transformer(num_states, length, **asdict(self), init=init, rng=rng)


@dataclass(frozen=True)
class TransformerConfig(TransformerShape, BoundedConfig):
    """Everything that shapes a standard transformer, apart from its weights."""

    activation: Annotated[str, Among(ACTIVATIONS)] = "relu"
    """Activation function of the MLP."""


class Transformer(Model):
    r"""The paper's standard transformer, with any number of heads in each layer.

    It is
    $h^{(l)} = h^{(l-1)} + \sum_h \mathrm{Softmax}(\mathcal M(h Q K^\top h^\top); \alpha)\, h V$,
    then an MLP if there is one, and $\hat p = \mathrm{Softmax}(h^{(L)} W_O^\top)$.

    The backends (`paths`): "plain" evaluates the equations. "fused" computes the same
    numbers with less work. "compiled" does so with attention in C, and needs float32, a
    CPU and a C compiler.

    Args:
        num_states: tokens are 0 to num_states - 1.
        length: the longest sequence.
        dim: width of the residual stream.
        qk_dim: width of queries and keys.
        heads: number of heads of each layer.
        mlp_dim: width of an MLP after every attention layer. By default there is none.
        activation: of the MLP.
        temperature: α, the divisor of scores. Default: sqrt(qk_dim).
        readout: the kind of output, "logit" or "probability".
        dtype: torch.float32 or torch.float64.
        init: "uniform" draws embeddings from N(0, 1) and every other weight from
            ±1/sqrt(its inputs); "normal" is N(0, 1/its inputs) for everything, dim for
            the embeddings; "zeros".
        rng: a generator or a seed. Default: 0.

    >>> import sih
    >>> model = sih.Transformer(num_states=5, length=128, dim=64, qk_dim=32, heads=(1, 3, 1))
    >>> model  # doctest: +NORMALIZE_WHITESPACE
    Transformer(num_states=5, length=128, heads=(1, 3, 1), temperature=5.657,
        readout='logit', dtype='float32', dim=64, qk_dim=32, activation='relu', weights=49_792)
    >>> model.predict(torch.zeros(1, 10, dtype=torch.int64)).shape
    torch.Size([1, 10, 5])
    """

    Config = TransformerConfig
    Shape = TransformerShape
    draws = ("uniform", "normal")
    paths = ("compiled", "fused", "plain")
    config: TransformerConfig

    def __init__(
        self,
        num_states: int,
        length: int,
        dim: int = 64,
        qk_dim: int = 32,
        heads: Sequence[int] = (1, 3, 1),
        mlp_dim: int | None = None,
        *,
        activation: str = "relu",
        temperature: float | None = None,
        readout: str = "logit",
        dtype: torch.dtype = torch.float32,
        init: str = "uniform",
        rng: Seed | None = None,
    ) -> None:
        check_sizes(qk_dim=qk_dim)
        alpha = math.sqrt(qk_dim) if temperature is None else temperature
        sizes = {"num_states": num_states, "length": length, "heads": heads, "dim": dim}
        sizes |= {"qk_dim": qk_dim, "mlp_dim": mlp_dim, "activation": activation}
        form = {"temperature": alpha, "readout": readout, "dtype": dtype_name(dtype)}
        super().__init__(make(TransformerConfig, {**sizes, **form}), init, rng)

    def make_weights(self, dtype: torch.dtype) -> None:
        config, dim = self.config, self.config.dim
        self.token = nn.Parameter(torch.zeros(config.num_states, dim, dtype=dtype))
        self.position = nn.Parameter(torch.zeros(config.length, dim, dtype=dtype))
        sizes = (dim, config.qk_dim, config.mlp_dim, dtype)
        self.layers = nn.ModuleList(Layer(count, *sizes) for count in config.heads)
        self.readout = nn.Parameter(torch.zeros(config.num_states, dim, dtype=dtype))

    @classmethod
    def count_weights(cls, config: TransformerConfig) -> int:
        head = config.dim * (2 * config.qk_dim + config.dim)
        mlps = 2 * config.dim * (config.mlp_dim or 0) * len(config.heads)
        return (
            (2 * config.num_states + config.length) * config.dim + sum(config.heads) * head + mlps
        )

    def draw(self, init: str, rng: torch.Generator) -> None:
        for name, weight in self.named_parameters():
            reads_columns = name == "readout" or name.endswith("W2")
            inputs = weight.shape[-1] if reads_columns else self.config.dim
            if init == "normal":
                draw_normal(weight, 1 / math.sqrt(inputs), rng)
            elif name in ("token", "position"):
                draw_normal(weight, 1, rng)
            else:
                draw_uniform(weight, 1 / math.sqrt(inputs), rng)

    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        batch, time = tokens.shape
        position = self.position[:time].expand(batch, -1, -1)
        h = site("0/stream", site("token", self.token[tokens]) + site("position", position))
        for number, layer in enumerate(self.each_layer(), 1):
            outputs = []
            for head, (Q, K, V) in enumerate(zip(layer.Q, layer.K, layer.V, strict=True), 1):
                name = f"{number}.{head}"
                query, key, value = (site(f"{name}/{use}", h) for use in ("query", "key", "value"))
                scores = site(f"{name}/scores", mask_later(query @ Q @ (key @ K).mT))
                attention = site(
                    f"{name}/attention", torch.softmax(scores / self.config.temperature, dim=-1)
                )
                outputs.append(site(f"{name}/output", attention @ (value @ V)))
            h = h + sum(outputs)
            if self.config.mlp_dim is not None:
                read = site(f"{number}/mlp_input", h)
                h = h + site(f"{number}/mlp", layer.mlp(read, self.config.activation))
            h = site(f"{number}/stream", h)
        return site("output", h @ self.readout.T)

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        in_c = path == "compiled"
        if in_c:
            compiled.check_fits(self.readout)
        layers, temperature, activation = (
            self.each_layer(),
            self.config.temperature,
            self.config.activation,
        )
        return fused.forward(
            tokens, self.token, self.position, layers, self.readout, temperature, activation, in_c
        )

    def usual_path(self) -> str:
        return "compiled" if compiled.fits(self.readout) and fastest().compiled else "fused"

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "query key"]]:
        layer, index = (int(part) - 1 for part in head.split("."))
        weights = self.each_layer()[layer]
        QK = weights.Q[index] @ weights.K[index].mT
        return {
            name: x @ QK @ x.mT for name, x in (("token", self.token), ("position", self.position))
        }

    def contributions(self, trace: Trace) -> dict[str, Float[Tensor, "batch time state"]]:
        written = (name for name in trace.names if name.endswith(("/output", "/mlp")))
        return {name: trace[name] @ self.readout.T for name in ("token", "position", *written)}

    def each_layer(self) -> list[Layer]:
        """Return the layers, each with its weights Q, K, V by head.

        >>> import sih
        >>> sih.Transformer(num_states=2, length=8, dim=16, qk_dim=4).each_layer()[1].Q.shape
        torch.Size([3, 16, 4])
        """
        return [layer for layer in self.layers if isinstance(layer, Layer)]
