"""TransformerLens' native model without normalisation, a position at a time, sharing no code with `sih` or with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def native_pass(
    config: Mapping[str, Any], weights: Mapping[str, Tensor], tokens: list[int]
) -> tuple[list[list[float]], list[list[list[list[float]]]]]:
    """Outputs by position, and attention by layer, head, query and key."""
    w = {name: weight.double() for name, weight in weights.items()}
    width, scale = config["d_head"], config.get("attn_scale", -1.0)
    scale = scale if scale > 0 else math.sqrt(width)

    def linear(name: str, x: Tensor) -> Tensor:
        return w[f"{name}.weight"] @ x + w.get(f"{name}.bias", torch.tensor(0.0))

    stream = [w["embed.weight"][s] + w["pos_embed.weight"][i] for i, s in enumerate(tokens)]
    patterns = []
    for layer in range(config["n_layers"]):
        name, heads, added = f"blocks.{layer}", [], [torch.tensor(0.0)] * len(tokens)
        q, k, v = ([linear(f"{name}.attn.{part}", h) for h in stream] for part in "qkv")
        mixed = [[] for _ in tokens]  # type: list[list[Tensor]]
        for head in range(config["n_heads"]):
            own = slice(head * width, (head + 1) * width)
            rows = []
            for i in range(len(tokens)):
                scores = [float(q[i][own] @ k[j][own]) / scale for j in range(i + 1)]
                powers = [math.exp(score - max(scores)) for score in scores]
                row = [power / sum(powers) for power in powers]
                mixed[i].append(sum((a * v[j][own] for j, a in enumerate(row)), torch.zeros(width)))
                rows.append(row + [0.0] * (len(tokens) - i - 1))
            heads.append(rows)
        patterns.append(heads)
        added = [linear(f"{name}.attn.o", torch.cat(parts).double()) for parts in mixed]
        stream = [h + x for h, x in zip(stream, added, strict=True)]
        if not config["attn_only"]:
            act = {"relu": torch.relu, "gelu": torch.nn.functional.gelu}[config["act_fn"]]
            stream = [
                h + linear(f"{name}.mlp.out", act(linear(f"{name}.mlp.in", h))) for h in stream
            ]
    return [linear("unembed", h).tolist() for h in stream], patterns
