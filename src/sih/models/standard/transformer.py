r"""The standard transformer (paper, Sec. 3): attention, a residual sum, an MLP or none; no biases, no norms.

    h^(0)_i  = E[s_i] + F[i]                                                     learned token and position
    htilde   = h + sum_h Softmax(M(h Q^(l,h) K^(l,h)^T h^T); alpha) h V^(l,h)    h = h^(l-1), a row a position
    h^(l)    = htilde + sigma(htilde W_1^(l)) W_2^(l)^T                          only with MLPs; else htilde
    output   = h^(L) W_O^T

with M the causal mask and alpha the temperature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.checks import (
    DTYPES,
    READOUTS,
    check_choice,
    check_heads,
    check_sizes,
    check_temperature,
    check_tokens,
    dtype_name,
)
from sih.models.sites import UNOBSERVED, Recorder, Replacement, Site, Trace
from sih.models.standard import fused
from sih.models.standard.layer import ACTIVATIONS, Layer

PATHS = ("fused", "plain")


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that shapes a model, apart from its weights."""

    num_states: int
    length: int
    dim: int
    qk_dim: int
    heads: tuple[int, ...]
    mlp_dim: int | None
    activation: str
    temperature: float
    readout: str
    dtype: str

    def __post_init__(self) -> None:
        check_sizes(num_states=self.num_states, length=self.length, dim=self.dim, qk_dim=self.qk_dim)
        if self.mlp_dim is not None:
            check_sizes(mlp_dim=self.mlp_dim)
        object.__setattr__(self, "heads", check_heads(self.heads))
        object.__setattr__(self, "temperature", check_temperature(self.temperature))
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        check_choice("readout", self.readout, READOUTS)
        check_choice("dtype", self.dtype, tuple(DTYPES))

    def build(self) -> Transformer:
        """A model of this shape, all its weights zero."""
        return Transformer(**{**asdict(self), "dtype": DTYPES[self.dtype]}, init="zeros")


class Transformer(nn.Module):
    """The paper's standard transformer; heads per layer may differ.

    `temperature` is alpha, sqrt(qk_dim) unless given. `readout` says what the output is: "logit" (a softmax
    makes it a law) or "probability" (it is the law already). `mlp_dim` adds an MLP with `activation` to every
    layer.

    `init="uniform"` draws embeddings from N(0, 1) and every other weight uniformly from +-1/sqrt(its inputs),
    from `rng` (a generator seeded with 0 if there is none); `"normal"` is N(0, 1/its inputs) for everything,
    with d for the embeddings; `"zeros"` is for weights to come.
    """

    default_path = "fused"

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
        rng: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        check_sizes(qk_dim=qk_dim)
        self.config = TransformerConfig(
            num_states,
            length,
            dim,
            qk_dim,
            tuple(heads),
            mlp_dim,
            activation,
            math.sqrt(qk_dim) if temperature is None else temperature,
            readout,
            dtype_name(dtype),
        )
        check_choice("init", init, ("uniform", "normal", "zeros"))
        self.token = nn.Parameter(torch.zeros(num_states, dim, dtype=dtype))
        self.position = nn.Parameter(torch.zeros(length, dim, dtype=dtype))
        self.layers = nn.ModuleList(Layer(count, dim, qk_dim, mlp_dim, dtype) for count in self.config.heads)
        self.readout = nn.Parameter(torch.zeros(num_states, dim, dtype=dtype))
        if init != "zeros":
            self._draw(init, rng if rng is not None else torch.Generator().manual_seed(0))

    @torch.no_grad()
    def _draw(self, init: str, rng: torch.Generator) -> None:
        for name, weight in self.named_parameters():
            draw = torch.empty(weight.shape, dtype=weight.dtype)
            inputs = weight.shape[-1] if name == "readout" or name.endswith("W2") else self.config.dim
            if init == "normal":
                draw.normal_(0, 1 / math.sqrt(inputs), generator=rng)
            elif name in ("token", "position"):
                draw.normal_(0, 1, generator=rng)
            else:
                draw.uniform_(-1 / math.sqrt(inputs), 1 / math.sqrt(inputs), generator=rng)
            weight.copy_(draw)

    def forward(self, tokens: Int[Tensor, "batch time"], path: str = "fused") -> Float[Tensor, "batch time state"]:
        """The output of the last linear map. Sequences may be shorter than `length`.

        `path="plain"` is the equations as they stand; `"fused"` the same numbers with less work.
        """
        check_choice("path", path, PATHS)
        check_tokens(tokens, self.config.num_states, self.config.length)
        if path == "plain":
            return self._plain(tokens, UNOBSERVED)
        return fused.forward(
            tokens,
            self.token,
            self.position,
            self.each_layer(),
            self.readout,
            self.config.temperature,
            self.config.activation,
        )

    def predict(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time state"]:
        """The law of the next token at every position."""
        output = self(tokens)
        return output if self.config.readout == "probability" else torch.softmax(output, dim=-1)

    def trace(self, tokens: Int[Tensor, "batch time"]) -> Trace:
        """A pass with everything it computed, by name (see `sih.models.sites`)."""
        return self.run(tokens)

    def run(self, tokens: Int[Tensor, "batch time"], replace: Mapping[str, Replacement] | None = None) -> Trace:
        """A pass with some values replaced, by others or by a function of them, and what follows redone.

        `model.run(tokens, replace={"2.3/output": 0.0})` takes a head out; `trace.output` is then the output.
        """
        check_tokens(tokens, self.config.num_states, self.config.length)
        recorder = Recorder(dict(replace or {}))
        self._plain(tokens, recorder)
        return recorder.trace(tokens, self.config.heads)

    def each_layer(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def _plain(self, tokens: Int[Tensor, "batch time"], site: Site) -> Float[Tensor, "batch time state"]:
        batch, time = tokens.shape
        position = self.position[:time].expand(batch, -1, -1)
        h = site("0/stream", site("token", self.token[tokens]) + site("position", position))
        later = torch.ones(time, time, dtype=torch.bool, device=tokens.device).triu(1)
        for number, layer in enumerate(self.each_layer(), 1):
            outputs = []
            for head, (Q, K, V) in enumerate(zip(layer.Q, layer.K, layer.V, strict=True), 1):
                name = f"{number}.{head}"
                scores = site(f"{name}/scores", (h @ Q @ (h @ K).mT).masked_fill(later, -math.inf))
                attention = site(f"{name}/attention", torch.softmax(scores / self.config.temperature, dim=-1))
                outputs.append(site(f"{name}/output", attention @ (h @ V)))
            h = h + sum(outputs)
            if self.config.mlp_dim is not None:
                h = h + site(f"{number}/mlp", layer.mlp(h, self.config.activation))
            h = site(f"{number}/stream", h)
        return site("output", h @ self.readout.T)

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in asdict(self.config).items())
