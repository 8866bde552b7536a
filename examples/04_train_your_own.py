"""Train a small model, see its KL come down beside the best that can be done, save it and load it again.

Run with: python examples/04_train_your_own.py [STEPS]
Its few seconds are enough to see it learn; docs/training.md has the recipes that reach the best.
"""

import sys
import tempfile

import sih

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
config = sih.TrainConfig(
    lags=(1, 2),
    length=16,
    heads=(1, 1, 1),
    steps=steps,
    batch=64,
    learning_rate=0.005,
    evaluate_every=max(1, steps // 6),
    held_out=256,
)
for step in sih.train(config):
    if step.evaluation:
        best = f"maximum likelihood {step.evaluation.ml_kl:.3f}, Bayes {step.evaluation.bma_kl:.3f}"
        print(f"step {step.step:>4}  KL {step.evaluation.mean_kl:.3f}  ({best})")

task = config.task.build()
assert isinstance(task, sih.Task)  # one matrix for all sequences, one lag for each
batch = sih.sample(task, size=64, rng=1)
print(sih.diagnose(task, batch, model=step.model).verdict)

with tempfile.TemporaryDirectory() as folder:
    sih.save(step.model, folder)
    again = sih.load(folder)
print(
    "saved and loaded: the same",
    bool((again.predict(batch.tokens) == step.model.predict(batch.tokens)).all()),
)
