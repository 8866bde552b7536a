"""One test for each line of docs/errata.md: the printed form fails, the corrected form holds."""

from __future__ import annotations

import torch

import sih


def test_the_lag_is_uniform_over_the_set() -> None:
    """Eq. (1) draws k from 1 .. k_hat; for {1, 3} that would make a third of the sequences lag 2."""
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 3), length=5)
    lags = sih.sample(task, 20_000, rng=torch.Generator().manual_seed(0)).lags
    assert not (lags == 2).any()
    assert abs((lags == 3).double().mean().item() - 1 / 2) < 5 * 0.5 / 20_000**0.5
