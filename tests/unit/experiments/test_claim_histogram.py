from __future__ import annotations

from pathlib import Path

import torch

from sih.experiments import claim_histogram
from sih.figures import style
from sih.figures.claim_panels import draw_claim_histogram
from sih.runs.run_store import RunStore
from sih.theory.claim import claim_table
from sih.theory.monte_carlo import random_matrices

LAGS = (1, 2, 5)


def test_histogram() -> None:
    data = claim_histogram.compute(claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=LAGS), RunStore())
    table = claim_table(random_matrices(3, 4, seed=0), LAGS)
    torch.testing.assert_close(torch.tensor(data.margins).double(), table.margins, rtol=0, atol=1e-6)
    ax = draw_claim_histogram(data).axes[0]
    assert sum(patch.get_height() for patch in ax.patches) == 12  # type: ignore[attr-defined]
    assert claim_histogram.EXPERIMENT.config.lags == (1, 2, 7, 9, 10, 11, 13, 15, 16, 22, 26, 28)
    assert (claim_histogram.EXPERIMENT.config.matrices, claim_histogram.EXPERIMENT.config.num_states) == (1000, 10)


def test_figures_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    data = claim_histogram.compute(claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=LAGS), RunStore())
    first, second = (style.save(draw_claim_histogram(data), tmp_path / name / "figure") for name in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
