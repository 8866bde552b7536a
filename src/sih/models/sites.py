"""Names of the activations of a forward pass, to read and to change them.

A model calls `site(name, value)` at each activation and continues with the result. In
an ordinary pass that is the value itself. `PassRecorder` stores it, or its replacement.
Each name is also a submodule, a `HookPoint` (`Model.hook_points`), through which the
value passes if the point has hooks.

Names, the same for all kinds of model (layers and heads counted from 1):

    token, position         the two parts of the embedding
    0/stream .. L/stream    the residual stream before the first and after every layer
    l.h/query, /key, /value the stream as the head reads it, for each of its three uses
    l.h/scores              h^T A h before the temperature, -inf where a key is later than the query
    l.h/attention           their softmax
    l.h/output              what the head writes to the stream
    l/mlp_input, l/mlp      the stream as the MLP reads it, and what it writes (standard model, if it has MLPs)
    l.h/.../token, .../position    the blocks of a head's output (disentangled; `sih.models.disentangled.blocks`)
    l.h/.../token, .../offset      the same with relative positions (`sih.models.relative.offset_blocks`)
    l.h/by_offset           what is added to the scores by offset, 0 .. reach (relative model, where keys know it)
    l.h/offset              attention by offset, 0 .. reach (relative models, where values know it)
    output                  the last linear map's

A model with a start token has a row and a key for it, the first, in all activations
except the output. Token 0 is then in row `Trace.first`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.showing import Drawn

Replacement = Tensor | float | Callable[[Tensor], Tensor]


def layer_of(name: str) -> int:
    """Return the number of the layer that makes an activation, e.g. 2 for "2.1/output"
    or "2/mlp".

    >>> layer_of("2.1/output")
    2
    """
    return int(name.partition("/")[0].partition(".")[0])


class Site:
    """The function that a pass calls at each activation, which applies its hooks.

    `points` are the modules that have hooks. Each gets a copy, so that a change in
    place does not spread.
    """

    def __init__(self, points: Mapping[str, nn.Module] | None = None) -> None:
        self.points = points or {}

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name not in self.points:
            return value
        new = self.points[name](value.clone())
        if not isinstance(new, Tensor) or new.shape != value.shape:
            got = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
            raise ValueError(
                f"a hook at {name!r} must give a tensor of shape {tuple(value.shape)}; got {got}"
            )
        return new

    def parts(self, name: str, value: Tensor, columns: Mapping[str, slice]) -> Tensor:
        """Return the value after the hooks of its parts, each with its own name."""
        if not self.points.keys() & columns.keys():
            return value
        return torch.cat([self(part, value[..., where]) for part, where in columns.items()], dim=-1)


@dataclass(frozen=True, eq=False)
class Trace(Drawn):
    """The activations of one forward pass: `trace["2.1/attention"]` is one by its name.

    `names` lists the names. `attention[layer]` and `scores[layer]` stack the heads of a
    layer (indices from 0, as everywhere in code). `trace.plot(sequence=0, length=48)`
    draws the attention of every head.

    >>> import sih
    >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
    >>> trace = model.trace(torch.zeros(3, 16, dtype=torch.int64))
    >>> trace
    Trace(sequences=3, length=16, heads=(1, 2, 1), values=53)
    >>> trace["2.1/attention"].shape, trace.attention[1].shape
    (torch.Size([3, 16, 16]), torch.Size([3, 2, 16, 16]))
    """

    drawing = "sih.results.plots.trace:draw_trace"

    tokens: Int[Tensor, "batch time"]
    values: Mapping[str, Tensor]
    heads: tuple[int, ...]
    first: int = 0
    """The row of token 0, which is 1 after a start token."""

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self.values[name]
        except KeyError:
            raise ValueError(
                f"the pass made nothing called {name!r}; it made {', '.join(self.names)}"
            ) from None

    def _facts(self) -> Mapping[str, Any]:
        size, time = self.tokens.shape
        return {"sequences": size, "length": time, "heads": self.heads, "values": len(self.values)}

    def plot(self, sequence: int = 0, length: int = 48) -> Any:
        """Return a matplotlib figure of every head's attention on one sequence.

        Args:
            sequence: its row in the batch.
            length: number of positions drawn. More than 48 are too small in print.

        Returns:
            The figure.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> figure = model.trace(torch.zeros(3, 16, dtype=torch.int64)).plot(sequence=2)
        >>> [ax.get_title() for ax in figure.axes[:4]]
        ['head 1.1', 'head 2.1', 'head 2.2', 'head 3.1']
        """
        return self._draw(sequence=sequence, length=length)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all activations (`sih.models.sites` explains them)."""
        return tuple(self.values)

    def stream(self, name: str) -> Float[Tensor, "batch time dim"]:
        """Return a part of the residual stream: a block, a head's output, or all after
        a layer.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.trace(torch.zeros(3, 16, dtype=torch.int64)).stream("1.1/token").shape
        torch.Size([3, 16, 2])
        """
        return self[name]

    @property
    def output(self) -> Float[Tensor, "batch time state"]:
        """Return the output of the last linear map."""
        return self["output"]

    @property
    def attention(self) -> tuple[Float[Tensor, "batch head query key"], ...]:
        """Return the attention of each layer's heads, rows summing to 1."""
        return self._stacked("attention")

    @property
    def scores(self) -> tuple[Float[Tensor, "batch head query key"], ...]:
        """Return the scores of each layer's heads, before temperature and softmax."""
        return self._stacked("scores")

    @property
    def between_tokens(self) -> tuple[Float[Tensor, "batch head query key"], ...]:
        """Return the attention of each layer's heads without a start token.

        Rows sum to 1 less the attention to the start token.
        """
        return tuple(layer[..., self.first :, self.first :] for layer in self.attention)

    def _stacked(self, what: str) -> tuple[Tensor, ...]:
        return tuple(
            torch.stack([self[f"{layer}.{head}/{what}"] for head in range(1, count + 1)], dim=1)
            for layer, count in enumerate(self.heads, 1)
        )


class PassRecorder(Site):
    """A site that stores every activation, after its replacement in `replace` if there
    is one.
    """

    def __init__(
        self,
        replace: Mapping[str, Replacement] | None = None,
        points: Mapping[str, nn.Module] | None = None,
    ) -> None:
        super().__init__(points)
        self.replace = replace or {}
        self.values: dict[str, Tensor] = {}

    def __call__(self, name: str, value: Tensor) -> Tensor:
        value = super().__call__(name, value)
        if name in self.replace:
            replacement = self.replace[name]
            new = replacement(value) if callable(replacement) else replacement
            new = torch.as_tensor(new, dtype=value.dtype, device=value.device)
            try:
                value = new.expand(value.shape)
            except RuntimeError:
                wanted = f"shape {tuple(value.shape)}, or broadcast to it; got {tuple(new.shape)}"
                raise ValueError(f"the replacement for {name!r} must have {wanted}") from None
        self.values[name] = value
        return value

    def parts(self, name: str, value: Tensor, columns: Mapping[str, slice]) -> Tensor:
        parts = [self(part, value[..., where]) for part, where in columns.items()]
        if columns.keys() & (self.replace.keys() | self.points.keys()):
            self.values[name] = torch.cat(parts, dim=-1)
        return self.values[name]
