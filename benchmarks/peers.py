"""A training step of the standard model beside what one would use instead, in one run.

- `SDPA`: the same model, the same weights, written with torch's modules and `scaled_dot_product_attention`.
- `torch.compile`: that, compiled, the loss included. Compiling takes place before anything is timed.
- `TransformerLens`: its native model under its bridge, where it is installed. It has one number of heads for all layers
  and values as wide as queries, so it stands beside ours with the heads that make it do no more operations than ours
  does: one in each layer beside [1,1,1], two beside [1,3,1] (96 % of ours).

Every peer gets what ours has: its best size of micro-batch, and for SDPA its best form. Keys narrower than values do
not qualify for torch's flash kernel on a CPU, so that keys padded with zeros to the width of the values are tried too.
What was tried is printed, and the best of it is timed beside ours.

The exit code is 1 if a peer is faster. With `--device cuda` all of it runs there.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import sih
from benchmarks.models import clock, fast_step, sequences
from benchmarks.timing import Clock, in_turn, machine, ratio

STATES, TIME, DIM, QK_DIM, BATCH = 5, 128, 64, 32, 256
MICRO = (32, 64, 128, 256)
"""Sizes of micro-batch that a peer may take."""
Call = Callable[[], object]
Loss = Callable[[Tensor], Tensor]


class WithSDPA(nn.Module):
    """The standard transformer as one would write it in torch, its keys padded to the width of the values or not."""

    def __init__(self, heads: Sequence[int], padded: bool) -> None:
        super().__init__()
        self.heads, self.padding = heads, DIM - QK_DIM if padded else 0
        self.token, self.position = nn.Embedding(STATES, DIM), nn.Embedding(TIME, DIM)
        self.qkv = nn.ModuleList(
            nn.Linear(DIM, count * (2 * QK_DIM + DIM), bias=False) for count in heads
        )
        self.readout = nn.Linear(DIM, STATES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        h = self.token(tokens) + self.position.weight
        for count, layer in zip(self.heads, self.qkv, strict=True):
            parts = torch.split(layer(h), [count * QK_DIM, count * QK_DIM, count * DIM], dim=-1)
            q, k, v = (part.unflatten(-1, (count, -1)).transpose(1, 2) for part in parts)
            q, k = (nn.functional.pad(each, (0, self.padding)) for each in (q, k))
            attended = nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=True, scale=1 / math.sqrt(QK_DIM)
            )
            h = h + attended.sum(dim=1)
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


@dataclass(frozen=True)
class Setting:
    """What is compared: the heads of our model, those of TransformerLens, the sequences, where it runs."""

    heads: tuple[int, ...]
    lens_heads: int
    tokens: Tensor

    @property
    def device(self) -> torch.device:
        return self.tokens.device


def step(model: nn.Module, loss: Loss, tokens: Tensor, micro: int) -> Call:
    """One step of Adam, its gradient summed over micro-batches."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    parts = tokens.split(micro)

    def once() -> None:
        optimiser.zero_grad()
        for part in parts:
            share = len(part) / len(tokens)
            (share * loss(part)).backward()
        optimiser.step()

    return once


def loss_of(model: Callable[[Tensor], Tensor]) -> Loss:
    def loss(tokens: Tensor) -> Tensor:
        output = model(tokens)[:, :-1].flatten(0, 1)
        return nn.functional.cross_entropy(output, tokens[:, 1:].flatten())

    return loss


def sdpa_step(setting: Setting, padded: bool, micro: int) -> Call:
    model = WithSDPA(setting.heads, padded).to(setting.device)
    return step(model, loss_of(model), setting.tokens, micro)


def compiled_step(setting: Setting, padded: bool, micro: int) -> Call:
    model = WithSDPA(setting.heads, padded).to(setting.device)
    return step(model, torch.compile(loss_of(model)), setting.tokens, micro)


def lens_step(setting: Setting, padded: bool, micro: int) -> Call:
    lens: Any = importlib.import_module("transformer_lens.model_bridge.sources.native")
    sizes = {"n_layers": 3, "d_model": DIM, "d_head": QK_DIM, "n_ctx": TIME, "d_vocab": STATES}
    more = {"n_heads": setting.lens_heads, "attn_only": True, "normalization_type": None, "seed": 0}
    model = lens.boot({**sizes, **more}).to(setting.device)
    return step(model, loss_of(model), setting.tokens, micro)


PEERS: dict[str, tuple[Callable[[Setting, bool, int], Call], tuple[bool, ...]]] = {
    "SDPA": (sdpa_step, (False, True)),
    "torch.compile": (compiled_step, (False, True)),
    "TransformerLens": (lens_step, (False,)),
}
"""How a peer makes its step, and whether its keys may be padded."""


def best_of(name: str, setting: Setting, rounds: int, timer: Clock) -> tuple[str, Call] | None:
    """Search a peer's best form and micro-batch and print what was tried, without what cannot run, e.g. for memory."""
    make, forms = PEERS[name]
    calls: dict[str, Call] = {}
    for padded, micro in itertools.product(forms, MICRO):
        label = f"{'keys padded, ' if padded else ''}{micro} at a time"
        try:
            call = make(setting, padded, micro)
            call()
        except (ImportError, RuntimeError) as error:
            print(f"      {name}, {label}: skipped: {first_line(error)}")
            if isinstance(error, ImportError):
                return None
        else:
            calls[label] = call
    if not calls:
        return None
    times = in_turn(calls, rounds, timer)
    medians = {label: statistics.median(found) for label, found in times.items()}
    for label, seconds in medians.items():
        print(f"      {name}, {label}: {1e3 * seconds:.0f} ms")
    best = min(medians, key=lambda label: medians[label])
    return f"{name}, {best}", calls[best]


def compare(setting: Setting, rounds: int) -> list[str]:
    """Print a table, ours first, and return which peers are faster."""
    ours = sih.Transformer(STATES, TIME, heads=setting.heads).to(setting.device)
    check_same_model(ours, setting)
    timer = clock_of(setting.device)
    print(f"  {list(setting.heads)}, batch {BATCH}")
    found = [best_of(name, setting, max(3, rounds // 2), timer) for name in PEERS]
    peers = dict(one for one in found if one is not None)
    times = in_turn({"sih": fast_step(ours, setting.tokens), **peers}, rounds, timer)
    for name, seconds in times.items():
        slower = ratio(seconds, times["sih"])
        print(
            f"    {name:<44} {1e3 * statistics.median(seconds):7.0f} ms   {slower:5.2f} times as long"
        )
    return [
        f"{list(setting.heads)}: {name} is faster"
        for name in peers
        if ratio(times[name], times["sih"]) < 1
    ]


def check_same_model(ours: sih.Transformer, setting: Setting) -> None:
    """Check that both forms of the peer are our model, with its weights."""
    assert math.isclose(ours.config.temperature, math.sqrt(QK_DIM))
    few = setting.tokens[:4]
    for padded in (False, True):
        peer = WithSDPA(setting.heads, padded).to(setting.device)
        peer.copy_from(ours)
        torch.testing.assert_close(peer(few), ours(few), rtol=1e-4, atol=1e-5)


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def clock_of(device: torch.device) -> Clock:
    """Return a clock that waits for the device's work to be done."""
    if device.type != "cuda":
        return clock()

    def waiting() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()  # the processor waits, and its time says nothing

    return waiting


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    try:
        tokens = sequences(BATCH).to(given.device)
    except (RuntimeError, AssertionError) as error:
        print(f"cannot compute on {given.device!r}: {first_line(error)}", file=sys.stderr)
        return 2
    where = torch.cuda.get_device_name(tokens.device) if tokens.is_cuda else machine()
    print(f"peers: forward, backward and Adam of the standard model, T = {TIME}, S = {STATES}")
    print(
        f"  {where}; medians of {given.rounds} rounds in turn, each peer at its best of what is tried"
    )
    settings = [Setting((1, 1, 1), 1, tokens), Setting((1, 3, 1), 2, tokens)]
    wrong = [line for setting in settings for line in compare(setting, given.rounds)]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
