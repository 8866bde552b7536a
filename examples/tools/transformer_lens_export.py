"""With TransformerLens: a trained model there, a head taken out by its hooks, and the diagnosis of what it computed.

Run with: python examples/tools/transformer_lens_export.py
"""

import torch

import sih

run = sih.open_run(
    "standard-1.2.3"
)  # trained by our recipe: its layers were restricted to roles at first
batch = sih.sample(run.task, size=32, rng=torch.Generator().manual_seed(0))
bridge = sih.to_transformer_lens(run.model)

logits, cache = bridge.run_with_cache(batch.tokens)
print(f"logits differ from ours by {(logits - run.model.run(batch.tokens).output).abs().max():.1e}")
patterns = [cache[f"blocks.{layer}.attn.hook_pattern"] for layer in range(3)]
print(sih.diagnose(run.task, batch, attention=patterns, law=logits).verdict)


def without_head_2_1(z, hook):  # type: ignore[no-untyped-def]
    z[:, :, 0] = 0
    return z


ablated = bridge.run_with_hooks(
    batch.tokens, fwd_hooks=[("blocks.1.attn.hook_z", without_head_2_1)]
)
print("without head 2.1:", sih.diagnose(run.task, batch, law=ablated).law.words)

again = sih.from_transformer_lens(bridge)
print("and back:", again.config.heads, "heads, width", again.config.dim)
