from __future__ import annotations

import numpy as np
import pytest
import torch

from sih.claim import claim_cumulative, claim_cumulative_figure
from sih.claim.claim_cumulative import CumulativePaths, settled_after
from sih.training.runs.run_store import RunStore

LAGS = (1, 2, 5)


def test_cumulative_averages_converge_to_the_expectations() -> None:
    data = claim_cumulative.compute(
        claim_cumulative.CumulativeConfig(num_states=3, lags=LAGS, length=20_000), RunStore()
    )
    torch.testing.assert_close(data.average[..., -1], data.limit, rtol=0, atol=0.02)
    sums = data.average.sum(dim=1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert len(claim_cumulative_figure.draw(data).axes) == 3


@pytest.mark.parametrize("states", [10, 25])
def test_the_papers_axes_and_a_colour_for_each_lag(states: int) -> None:
    """Figs. 17 and 18: linear from 0 to 1000, .05 to .12, twelve entries in the legend."""
    config = claim_cumulative.CumulativeConfig(num_states=states)
    figure = claim_cumulative_figure.draw(claim_cumulative.compute(config, RunStore()))
    for ax in figure.axes:
        assert (ax.get_xlim(), ax.get_xscale(), ax.get_ylim()) == (
            (0, 1000),
            "linear",
            (0.05, 0.12),
        )
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names[:12] == [f"lag {lag}" for lag in config.lags]
    curves = [line for line in figure.axes[3].lines if np.size(line.get_xdata()) == 1000]
    assert len({line.get_color() for line in curves}) == len(curves) == 12
    assert "cut at both ends" in claim_cumulative_figure.caption(config)


def test_an_average_has_settled_when_it_stays_strictly_the_largest() -> None:
    """By hand: lag 1 is ahead from the first on; lag 2 ties at the third transition; lag 5 is behind at the end."""
    ahead = [[0.5, 0.5, 0.5, 0.5], [0.3, 0.3, 0.3, 0.3], [0.2, 0.2, 0.2, 0.2]]
    ties = [[0.2, 0.2, 0.4, 0.2], [0.5, 0.5, 0.4, 0.5], [0.3, 0.3, 0.2, 0.3]]
    behind = [[0.1, 0.1, 0.2, 0.6], [0.1, 0.1, 0.1, 0.2], [0.8, 0.8, 0.7, 0.2]]
    data = CumulativePaths(LAGS, torch.tensor([ahead, ties, behind]), torch.zeros(3, 3))
    assert settled_after(data) == [1, 4, 5]
