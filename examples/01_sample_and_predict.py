"""Draw sequences with hidden lags, watch the posterior find one of them, and compare the predictors.

Run with: python examples/01_sample_and_predict.py
"""

import torch

import sih

rng = torch.Generator().manual_seed(1)
task = sih.Task(sih.random_transition_matrix(5, rng=rng), lags=(1, 2, 3), length=64)
batch = sih.sample(task, size=256, rng=rng)

tracker = sih.LagTracker(task)  # one token at a time, as it would come from a stream
for position, token in enumerate(batch.tokens[0, :24].tolist()):
    weights = zip(task.lags, tracker.update(token).tolist(), strict=True)
    print(
        f"{position:>3}  token {token}  "
        + "  ".join(f"lag {lag} {'#' * round(20 * p):<20}" for lag, p in weights)
    )
print(f"the lag was {batch.lags[0].item()}\n")

print("mean KL to the true law of the next token, in nats, over", len(batch), "sequences:")
for predict in (sih.bma, sih.selective, sih.maximum_likelihood, sih.ngram, sih.stationary_law):
    kl = sih.mean_kl(sih.kl_to_truth(predict(batch.tokens, task), batch, task), task)
    print(f"{predict.__name__:>20}  {kl.mean():.4f} ± {kl.std() / len(kl) ** 0.5:.4f}")
