"""The trace of a disentangled model, from its attention alone.

All other activations are products, computed on demand.
"""

from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import TokenTensor
from sih.models.disentangled.blocks import parse_head, stream_after
from sih.models.fast.causal import mask_later

READS = ("query", "key", "value")


class LazyValues(Mapping[str, Tensor]):
    """The activations of a pass, by name (`sih.models.sites`), made on demand.

    `known` has every head's attention and the output. Scores that are not in it are
    computed from the matrices `A`.
    """

    def __init__(
        self,
        tokens: TokenTensor,
        length: int,
        heads: tuple[int, ...],
        known: Mapping[str, Tensor],
        A: Sequence[Float[Tensor, "_ _ _"]] = (),
    ) -> None:
        self.heads, self.A, self.known = heads, A, dict(known)
        (batch, time), output = tokens.shape, known["output"]
        self.known["token"] = torch.eye(output.shape[-1]).to(output)[tokens]
        self.known["position"] = torch.eye(time, length).to(output).expand(batch, -1, -1)
        self.names = tuple(_names(output.shape[-1], length, heads))

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.known:
            if name not in self.names:
                raise KeyError(name)
            self.known[name] = self._derive(name)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def _derive(self, name: str) -> Tensor:
        head, _, rest = name.partition("/")
        if rest == "stream":
            if head == "0":
                return torch.cat([self["token"], self["position"]], dim=-1)
            before = int(head) - 1
            outputs = [self[f"{head}.{number + 1}/output"] for number in range(self.heads[before])]
            return torch.cat([self[f"{before}/stream"], *outputs], dim=-1)
        layer, index = parse_head(head, self.heads)
        if rest in READS:
            return self[f"{layer}/stream"]
        if rest == "scores":
            h = self[f"{layer}/stream"]
            return mask_later(h @ self.A[layer][index] @ h.mT)
        return self[f"{head}/attention"] @ self[f"{layer}/stream" if rest == "output" else rest]


def _names(num_states: int, length: int, heads: tuple[int, ...]) -> Iterator[str]:
    yield from (*stream_after(num_states, length, ()).names, "0/stream")
    for layer, count in enumerate(heads, 1):
        blocks = stream_after(num_states, length, heads[: layer - 1]).names
        for head in range(1, count + 1):
            yield from (
                f"{layer}.{head}/{what}"
                for what in (*READS, "scores", "attention", "output", *blocks)
            )
        yield f"{layer}/stream"
    yield "output"
