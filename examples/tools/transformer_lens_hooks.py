"""With TransformerLens' own hook points: run_with_cache and run_with_hooks on any model, disentangled ones too.

Run with: python examples/tools/transformer_lens_hooks.py
"""

import torch
from transformer_lens import HookedRootModule
from transformer_lens.hook_points import HookPoint

import sih
from sih.models import Model


class Hooked(HookedRootModule):  # type: ignore[misc]
    """Puts TransformerLens' hook points in the place of ours."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        for name in model.hook_points():
            model.set_submodule(name if "/" in name else f"/{name}", HookPoint())
        self.setup()

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.model.forward(tokens)


P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
task = sih.Task(P, lags=(1, 2, 3), length=64)
batch = sih.sample(task, size=16, rng=0)
hooked = Hooked(sih.construct(task))

_, cache = hooked.run_with_cache(batch.tokens)
print("values by name:", ", ".join(list(cache)[:4]), "...")
ablated = hooked.run_with_hooks(
    batch.tokens, fwd_hooks=[("model.2.1/output", lambda value, hook: 0 * value)]
)
for name, law in (("whole", hooked(batch.tokens)), ("without head 2.1", ablated)):
    print(
        f"{name:>17}: KL {sih.mean_kl(sih.kl_to_truth(law.detach(), batch, task), task).mean():.4f}"
    )
