"""Load a trained model, see its head choose, take heads away, and transplant what they hold from another lag.

Run with: python examples/03_look_inside_a_trained_model.py
"""

import torch

import sih

run = sih.open_run(
    "standard-1.2.3"
)  # its layers were restricted to roles at first; "paper-1.2.3" was trained without
task, model = run.task, run.model
batch = sih.sample(task, size=32, rng=0)


def kl(law: torch.Tensor) -> str:
    return f"{sih.mean_kl(sih.kl_to_truth(law, batch, task), task).mean():.4f}"


attention = model.trace(batch.tokens)["3.1/attention"]
for lag in task.lags:
    row = attention[batch.lags == lag, 100].mean(dim=0)
    print(
        f"lag {lag}: head 3.1 looks at the tokens that lags 1, 2, 3 copy:",
        [round(row[101 - k].item(), 2) for k in task.lags],
    )

print("KL, whole:", kl(model.predict(batch.tokens)))
for name in ("1.1/attention", "2.1/attention", "2.2/attention", "2.3/attention", "3.1/attention"):
    print(f"KL, {name} at its mean:", kl(sih.ablate(model, batch, name)))

clean, other = sih.sample(task, size=32, rng=1, lag=1), sih.sample(task, size=32, rng=2, lag=3)
patched = sih.patch(model, clean, other, ["3.1/attention"])
believed = {k: sih.known_lag(clean.tokens, torch.full((32,), k), task)[:, 64:-1] for k in task.lags}
distance = {
    k: round((patched[:, 64:-1] - law).abs().mean().item(), 3) for k, law in believed.items()
}
print(
    "sequences of lag 1 with the attention of lag 3; distance of the prediction from that of each lag:",
    distance,
)
