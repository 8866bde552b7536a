"""A training step: how long it takes, and what part of it is making the data."""

from __future__ import annotations

import dataclasses

import torch

import sih
from benchmarks.timing import machine, medians
from sih.training import TrainConfig, Trainer

CONFIGS = {
    "standard, batch 256": TrainConfig(),
    "standard, batch 64": TrainConfig(batch=64),
    "disentangled, batch 64": TrainConfig(model="disentangled", batch=64),
}


def main() -> None:
    print(f"training: lags 1 2 3, heads 1 3 1, length 128 ({machine()}; medians of 5)")
    for name, config in CONFIGS.items():
        trainer = Trainer(dataclasses.replace(config, held_out=16))
        rng = torch.Generator().manual_seed(1)
        found = medians(
            {
                "step": trainer.advance,
                "data": lambda trainer=trainer, rng=rng: sih.sample(trainer.task, trainer.config.batch, rng=rng),  # type: ignore[misc]
            },
            rounds=5,
        )
        rate = config.batch * config.length / found["step"]
        print(
            f"  {name}: {found['step'] * 1e3:.0f} ms a step, {rate:,.0f} tokens/s; data {found['data'] * 1e3:.2f} ms, "
            f"{found['data'] / found['step']:.1%} of a step (wanted under 3%)"
        )


if __name__ == "__main__":
    main()
