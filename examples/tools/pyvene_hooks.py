"""With pyvene: exchange a head's attention between sequences of two lags (an interchange intervention).

Run with: python examples/tools/pyvene_hooks.py
"""

import pyvene

import sih

P = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
task = sih.Task(P, lags=(1, 2, 3), length=64)
base = sih.sample(task, size=16, rng=0, lag=1)
source = sih.sample(task, size=16, rng=1, lag=3)
model = sih.construct(task)

name = "3.1/attention"
exchange = pyvene.VanillaIntervention(embed_dim=task.length)
intervenable = pyvene.IntervenableModel(
    {"component": f"{name}.output", "intervention": exchange}, model
)
positions = [[list(range(task.length))] * len(base)]
_, law = intervenable(
    base={"tokens": base.tokens},
    sources=[{"tokens": source.tokens}],
    unit_locations={"sources->base": (positions, positions)},
)
patched = model.run(base.tokens, replace={name: model.run(source.tokens)[name]}).output
print(f"differs from model.run(replace=...) by {(law - patched).abs().max():.1e}")
for what, found in (("own attention", model.predict(base.tokens)), ("that of lag 3", law)):
    print(f"{what}: KL {sih.mean_kl(sih.kl_to_truth(found.detach(), base, task), task).mean():.4f}")
