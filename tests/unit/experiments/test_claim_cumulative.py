from __future__ import annotations

import torch

from sih.experiments import claim_cumulative
from sih.figures.claim_panels import draw_claim_cumulative
from sih.runs.run_store import RunStore

LAGS = (1, 2, 5)


def test_cumulative_averages_converge_to_the_expectations() -> None:
    data = claim_cumulative.compute(
        claim_cumulative.CumulativeConfig(num_states=3, lags=LAGS, length=20_000), RunStore()
    )
    last = torch.tensor([[path[-1] for path in row] for row in data.average])
    torch.testing.assert_close(last, torch.tensor(data.limit), rtol=0, atol=0.02)
    sums = torch.tensor(data.average).sum(dim=1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert len(draw_claim_cumulative(data).axes) == 3
