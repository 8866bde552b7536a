from __future__ import annotations

import pytest

from sih.claim import beta, beta_figure
from sih.training.runs.run_store import RunStore


def test_beta() -> None:
    settings = beta.BetaConfig(
        num_states=3, lags=(1, 2), lengths=(8, 16), betas=(0.001, 1e6), matrices=2, sequences=40
    )
    data = beta.compute(settings, RunStore())
    for j in range(2):
        for kind in beta.EVIDENCES:
            low, high = data.selective[kind][j].tolist()
            assert high == pytest.approx(data.limit[j].item(), rel=1e-3, abs=1e-6)
            assert low > data.bma[j]
    assert len(beta_figure.draw(data).axes) == 2
    assert len(beta_figure.table(data)) == 3
