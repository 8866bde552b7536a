"""`sih.sample` against the usual loop: `torch.multinomial` on gathered rows at every step."""

from __future__ import annotations

import torch

import sih
from benchmarks.timing import machine, medians


def usual_loop(task: sih.Task, size: int, rng: torch.Generator) -> torch.Tensor:
    """Algorithm 1 as most would write it."""
    lags = torch.tensor(task.lags)[
        torch.multinomial(task.lag_prior, size, replacement=True, generator=rng)
    ]
    tokens = torch.empty((size, task.length), dtype=torch.int64)
    rows = torch.arange(size)
    for i in range(task.length):
        if i < task.max_lag:
            tokens[:, i] = torch.multinomial(task.stationary, size, replacement=True, generator=rng)
        else:
            law = task.P[tokens[rows, i - lags]]
            tokens[:, i] = torch.multinomial(law, 1, generator=rng)[:, 0]
    return tokens


def main() -> None:
    rng = torch.Generator().manual_seed(0)
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    print(f"sampler: 5 states, lags 1 2 3, length 128 ({machine()}; medians of 7)")
    for size, wanted in ((256, 3), (10_000, 5)):
        found = medians(
            {
                "loop": lambda size=size: usual_loop(task, size, rng),  # type: ignore[misc]
                "sih": lambda size=size: sih.sample(task, size, rng=rng),  # type: ignore[misc]
            }
        )
        ratio = found["loop"] / found["sih"]
        print(
            f"  {size:>6} sequences: usual loop {found['loop'] * 1e3:.1f} ms, sih.sample {found['sih'] * 1e3:.1f} ms, "
            f"{ratio:.1f}x (wanted {wanted}x)"
        )
    large = {
        "1,000 states, 256 x 128": (
            sih.Task(sih.random_transition_matrix(1000, rng=rng), (1, 2, 3), 128),
            256,
        ),
        "100,000 sequences of 16": (task.with_length(16), 100_000),
        "1 sequence of 1,000,000": (task.with_length(1_000_000), 1),
    }
    for name, (big, size) in large.items():
        took = medians({"": lambda big=big, size=size: sih.sample(big, size, rng=rng)}, rounds=1)[  # type: ignore[misc]
            ""
        ]
        print(f"  {name}: {took:.2f} s")


if __name__ == "__main__":
    main()
