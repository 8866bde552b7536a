"""Draw one sequence with a hidden lag and watch the exact posterior find it, a token at a time."""

import torch

import sih

rng = torch.Generator().manual_seed(1)
task = sih.Task(sih.random_transition_matrix(5, rng=rng), lags=(1, 2, 3), length=48)
batch = sih.sample(task, size=1, rng=rng)

tracker = sih.LagTracker(task)
for position, token in enumerate(batch.tokens[0].tolist()):
    posterior = tracker.update(token)
    bars = "  ".join(
        f"lag {lag} {'#' * round(20 * p):<20}" for lag, p in zip(task.lags, posterior.tolist(), strict=True)
    )
    print(f"{position:>3}  token {token}  {bars}")
print(f"the lag was {batch.lags.item()}")
