from __future__ import annotations

import torch

from sih.experiments import claim_cumulative
from sih.experiments.claim_cumulative import CumulativePaths, settled_after
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


def test_an_average_has_settled_when_it_stays_strictly_the_largest() -> None:
    """By hand: lag 1 is ahead from the first on; lag 2 ties at the third transition; lag 5 is behind at the end."""
    ahead = [[0.5, 0.5, 0.5], [0.3, 0.3, 0.3], [0.2, 0.2, 0.2]]
    ties = [[0.2, 0.2, 0.4, 0.2], [0.5, 0.5, 0.4, 0.5], [0.3, 0.3, 0.2, 0.3]]
    behind = [[0.1, 0.2, 0.6], [0.1, 0.1, 0.2], [0.8, 0.7, 0.2]]
    data = CumulativePaths(LAGS, [ahead, ties, behind], [[0.0] * 3] * 3)
    assert settled_after(data) == [1, 4, 4]
