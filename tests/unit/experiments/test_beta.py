from __future__ import annotations

import pytest

from sih.experiments import beta
from sih.figures.claim_panels import draw_beta
from sih.runs.run_store import RunStore


def test_beta() -> None:
    settings = beta.BetaConfig(
        num_states=3, lags=(1, 2), lengths=(8, 16), betas=(0.001, 1e6), matrices=2, sequences=40
    )
    data = beta.compute(settings, RunStore())
    for j in range(2):
        for kind in beta.EVIDENCES:
            assert data.selective[kind][j][1] == pytest.approx(data.limit[j], rel=1e-3, abs=1e-6)
            assert data.selective[kind][j][0] > data.bma[j]
    assert len(draw_beta(data).axes) == 2
    assert len(beta.table(data)) == 3
