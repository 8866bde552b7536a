"""With nnsight: read a head's attention and a gradient, and take a head out of a circuit.

Run with: python examples/tools/nnsight_hooks.py
"""

from nnsight import NNsight

import sih

P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
task = sih.Task(P, lags=(1, 2, 3), length=64)
batch = sih.sample(task, size=16, rng=0)
model = sih.construct(task)

seen = NNsight(model)
with seen.trace(batch.tokens):
    attention = seen.get("3.1/attention").output.save()
with seen.trace(batch.tokens):
    seen.get("2.1/output").output[:] = 0
    ablated = seen.output.save()
with seen.trace(batch.tokens):
    stream = seen.get("2/stream").output
    stream.requires_grad_(True)
    with seen.output[:, -1].max(dim=-1).values.sum().backward():
        slope = stream.grad.save()

print("attention of head 3.1:", tuple(attention.shape))
for name, law in (("whole", model.predict(batch.tokens)), ("without head 2.1", ablated)):
    print(
        f"{name:>17}: KL {sih.mean_kl(sih.kl_to_truth(law.detach(), batch, task), task).mean():.4f}"
    )
print("gradient at 2/stream:", tuple(slope.shape))
