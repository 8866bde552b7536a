"""A training step of the standard model beside what one would use instead, in one run.

- `SDPA`: the same model, the same weights, written with torch's modules and `scaled_dot_product_attention`.
- `torch.compile`: that, compiled, the loss included. Compiling takes place before anything is timed.
- `TransformerLens`: its native model under its bridge, where it is installed. It has one number of heads for all layers
  and values as wide as queries, so it stands beside ours with the heads that make it do no more operations than ours
  does: one in each layer beside [1,1,1], two beside [1,3,1] (96 % of ours).

The exit code is 1 if a peer is faster.
"""

from __future__ import annotations

import importlib
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import sih
from benchmarks.models import clock, fast_step, sequences
from benchmarks.timing import in_turn, machine, ratio

STATES, TIME, DIM, QK_DIM, BATCH = 5, 128, 64, 32, 256


class WithSDPA(nn.Module):
    """The standard transformer as one would write it in torch."""

    def __init__(self, heads: Sequence[int]) -> None:
        super().__init__()
        self.heads = heads
        self.token, self.position = nn.Embedding(STATES, DIM), nn.Embedding(TIME, DIM)
        self.qkv = nn.ModuleList(nn.Linear(DIM, count * (2 * QK_DIM + DIM), bias=False) for count in heads)
        self.readout = nn.Linear(DIM, STATES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.token(tokens) + self.position.weight
        for count, layer in zip(self.heads, self.qkv, strict=True):
            parts = torch.split(layer(h), [count * QK_DIM, count * QK_DIM, count * DIM], dim=-1)
            q, k, v = (part.unflatten(-1, (count, -1)).transpose(1, 2) for part in parts)
            h = h + nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum(dim=1)
        output: Tensor = self.readout(h)
        return output

    @torch.no_grad()
    def copy_from(self, model: sih.Transformer) -> None:
        self.token.weight.copy_(model.token)
        self.position.weight.copy_(model.position)
        self.readout.weight.copy_(model.readout)
        for own, layer in zip(self.qkv, model.each_layer(), strict=True):
            parts = [part.transpose(1, 2).flatten(0, 1) for part in (layer.Q, layer.K, layer.V)]
            own.weight.copy_(torch.cat(parts))  # type: ignore[operator]


def step(model: nn.Module, loss: Callable[[Tensor], Tensor], tokens: Tensor) -> Callable[[], object]:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def once() -> None:
        optimiser.zero_grad()
        loss(tokens).backward()
        optimiser.step()

    return once


def loss_of(model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def loss(tokens: Tensor) -> Tensor:
        return nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    return loss


def compiled_step(heads: Sequence[int], tokens: Tensor) -> Callable[[], object]:
    model = WithSDPA(heads)
    return step(model, torch.compile(loss_of(model)), tokens)


def lens_step(heads: int, tokens: Tensor) -> Callable[[], object]:
    lens: Any = importlib.import_module("transformer_lens.model_bridge.sources.native")
    config = {"n_layers": 3, "d_model": DIM, "d_head": QK_DIM, "n_heads": heads, "n_ctx": TIME, "d_vocab": STATES}
    model = lens.boot({**config, "attn_only": True, "normalization_type": None, "seed": 0})
    return step(model, loss_of(model), tokens)


def compare(heads: tuple[int, ...], lens_heads: int, rounds: int) -> list[str]:
    tokens, ours, peer = sequences(BATCH), sih.Transformer(STATES, TIME, heads=heads), WithSDPA(heads)
    peer.copy_from(ours)
    torch.testing.assert_close(peer(tokens[:4]), ours(tokens[:4]), rtol=1e-4, atol=1e-5)  # the same model, indeed
    assert math.isclose(ours.config.temperature, math.sqrt(QK_DIM))
    calls: dict[str, Callable[[], object]] = {"sih": fast_step(ours, tokens), "SDPA": step(peer, loss_of(peer), tokens)}
    print(f"  {list(heads)}, batch {BATCH}")
    others: dict[str, Callable[[], Callable[[], object]]] = {
        "torch.compile": lambda: compiled_step(heads, tokens),
        "TransformerLens": lambda: lens_step(lens_heads, tokens),
    }
    for name, make in others.items():
        try:
            call = make()
            call()
        except (ImportError, RuntimeError) as error:
            print(f"    {name:<16} skipped: {str(error).splitlines()[0]}")
        else:
            calls[name] = call
    times = in_turn(calls, rounds, clock())
    for name, found in times.items():
        print(
            f"    {name:<16} {statistics.median(found) * 1e3:7.0f} ms   {ratio(found, times['sih']):5.2f} times as long"
        )
    return [f"{list(heads)}: {name} is faster" for name, found in times.items() if ratio(found, times["sih"]) < 1]


def main(rounds: int = 5) -> int:
    print(f"peers: forward, backward and Adam of the standard model, T = 128, S = 5 ({machine()}; medians of {rounds})")
    wrong = [*compare((1, 1, 1), 1, rounds), *compare((1, 3, 1), 2, rounds)]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    sys.exit(main())
