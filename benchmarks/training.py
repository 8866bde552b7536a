"""A training step: how long it takes, and what part of it is not the model but data, loss and optimiser.

On one thread. The part is of processor time, which other work on the machine hardly changes (with more threads, their
waiting for each other counts too); the rate is by the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

import sih
from benchmarks.timing import machine, medians
from sih.models.fast.threads import limited_threads
from sih.models.parts import ROWS
from sih.training.config import TrainConfig
from sih.training.trainer import Trainer

CONFIGS = {
    "standard, batch 256": TrainConfig(),
    "standard, batch 64": TrainConfig(batch=64),
    "disentangled, batch 64": TrainConfig(model="disentangled", batch=64),
}
ROUNDS = 7


def cross_entropy(outputs: Tensor, tokens: Tensor) -> Callable[[], object]:
    """The loss and its gradient by the model's output, on the parts that a step takes."""

    def call() -> None:
        for part, target in zip(outputs.split(ROWS), tokens.split(ROWS), strict=True):
            leaf = part.detach().requires_grad_()
            nn.functional.cross_entropy(
                leaf[:, :-1].flatten(0, 1), target[:, 1:].flatten(), reduction="sum"
            ).backward()

    return call


@limited_threads(1)
def main() -> None:
    print(f"training: lags 1 2 3, heads 1 3 1, length 128 ({machine()}; medians of {ROUNDS})")
    for name, config in CONFIGS.items():
        trainer = Trainer(config.replace(held_out=16))
        rng, batch = torch.Generator().manual_seed(1), config.optimiser.batch
        clock: list[float] = []

        def step(trainer: Trainer = trainer, clock: list[float] = clock) -> None:
            begin = time.perf_counter()
            trainer.advance()
            clock.append(time.perf_counter() - begin)

        tokens = sih.sample(trainer.task, batch, rng=rng).tokens
        calls: dict[str, Callable[[], object]] = {
            "step": step,
            "data": lambda: sih.sample(trainer.task, batch, rng=rng),  # noqa: B023 (called at once)
            "loss": cross_entropy(torch.randn(*tokens.shape, trainer.task.num_states), tokens),
            "optimiser": trainer.optimizer.step,
        }
        found = medians(calls, ROUNDS, time.process_time)
        whole, seconds = found.pop("step"), statistics.median(clock[1:])
        parts = ", ".join(f"{part} {took / whole:.1%}" for part, took in found.items())
        print(
            f"  {name}: {seconds * 1e3:.0f} ms a step, {batch * config.task.length / seconds:,.0f} tokens/s; outside "
            f"the model {sum(found.values()) / whole:.1%} of {whole * 1e3:.0f} ms of processor time: {parts}"
            " (wanted under 5%, data under 3%)"
        )


if __name__ == "__main__":
    main()
