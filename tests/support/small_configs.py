"""Configurations small enough to train in a test."""

from __future__ import annotations

from typing import Any

from sih.training.config import TrainConfig

SMALL = TrainConfig(
    lags=(1, 2),
    states=3,
    length=12,
    heads=(1, 2),
    dim=8,
    qk_dim=4,
    steps=6,
    batch=5,
    evaluate_every=4,
    held_out=7,
)


def small(**changes: Any) -> TrainConfig:
    return SMALL.replace(**changes)
