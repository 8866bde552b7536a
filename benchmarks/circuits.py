"""The closed form of a circuit against its weights, and on a long sequence."""

from __future__ import annotations

import torch

import sih
from benchmarks.timing import machine, medians


def main() -> None:
    rng = torch.Generator().manual_seed(0)
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    model = sih.construct(task)
    tokens = sih.sample(task, 64, rng=rng).tokens
    found = medians(
        {
            "weights": lambda: model.predict(tokens),
            "closed": lambda: sih.mixture(
                sih.circuit_weights(tokens, task, model.circuit), tokens, task
            ),
        },
        rounds=5,
    )
    first = model.circuit.first_exact_position
    closed = sih.mixture(sih.circuit_weights(tokens, task, model.circuit), tokens, task)
    gap = (model.predict(tokens) - closed)[:, first:].abs().max().item()
    print(f"circuits: 64 x 128, 5 states, lags 1 2 3, float64 ({machine()}; medians of 5)")
    print(
        f"  weights {found['weights'] * 1e3:.0f} ms, closed form {found['closed'] * 1e3:.1f} ms, "
        f"{found['weights'] / found['closed']:.0f}x; largest difference {gap:.1e}"
    )
    long = torch.randint(5, (1, 100_000), generator=rng)
    took = medians(
        {
            "paper": lambda: sih.circuit_weights(long, task, model.circuit),
            "selective": lambda: sih.selective_weights(long, task),
        },
        rounds=5,
    )
    print(
        f"  one sequence of 100,000: circuit_weights {took['paper'] * 1e3:.0f} ms, "
        f"selective_weights {took['selective'] * 1e3:.0f} ms (wanted under 1 s)"
    )
    for lags in ((1, 2, 3), (1, 2, 3, 4, 5)):
        wide = sih.Task(task.P, lags, 128)
        build = medians({"": lambda wide=wide: sih.construct(wide, target="bayes")}, rounds=3)[""]  # type: ignore[misc]
        print(f"  construct(target='bayes'), lags {lags}: {build * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
