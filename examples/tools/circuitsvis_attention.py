"""With CircuitsVis: the attention of a circuit's heads as an interactive page.

Run with: python examples/tools/circuitsvis_attention.py
"""

from pathlib import Path

import circuitsvis
import torch

import sih

task = sih.Task([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], lags=(1, 2, 3), length=32)
tokens = sih.sample(task, size=1, rng=torch.Generator().manual_seed(0)).tokens
second = sih.construct(task).trace(tokens).attention[1][0]  # head, query, key

page = circuitsvis.attention.attention_heads(
    attention=second, tokens=[str(token) for token in tokens[0].tolist()]
)
Path("attention.html").write_text(str(page))
print(f"attention.html: {len(second)} heads, {second.shape[1]} tokens")
