"""A training step: how long it takes, and what part of it is making the data.

On one thread. The part is of processor time, which other work on the machine hardly changes (with more threads, their
waiting for each other counts too); the rate is by the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

import sih
from benchmarks.timing import machine
from sih.models.kernels.threads import limited_threads
from sih.training.config import TrainConfig
from sih.training.trainer import Trainer

CONFIGS = {
    "standard, batch 256": TrainConfig(),
    "standard, batch 64": TrainConfig(batch=64),
    "disentangled, batch 64": TrainConfig(model="disentangled", batch=64),
}
ROUNDS = 7


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds and clock seconds."""
    begin = time.process_time(), time.perf_counter()
    call()
    return time.process_time() - begin[0], time.perf_counter() - begin[1]


@limited_threads(1)
def main() -> None:
    print(f"training: lags 1 2 3, heads 1 3 1, length 128 ({machine()}; medians of {ROUNDS})")
    for name, config in CONFIGS.items():
        trainer = Trainer(config.replace(held_out=16))
        rng, batch = torch.Generator().manual_seed(1), config.optimiser.batch
        steps, draws = [], []
        for _ in range(ROUNDS + 1):  # the first is to warm up
            steps.append(timed(trainer.advance))
            draws.append(timed(lambda: sih.sample(trainer.task, batch, rng=rng)))  # noqa: B023 (called at once)
        processor, clock = (statistics.median(column) for column in zip(*steps[1:], strict=True))
        data = statistics.median(processor for processor, _ in draws[1:])
        print(
            f"  {name}: {clock * 1e3:.0f} ms a step, {batch * config.task.length / clock:,.0f} tokens/s; "
            f"data {data * 1e3:.2f} of {processor * 1e3:.0f} ms of processor time, {data / processor:.1%} "
            "(wanted under 3%)"
        )


if __name__ == "__main__":
    main()
