from __future__ import annotations

import pytest
from support.pictures import check_drawn_from_file

from sih.paper import teaser, teaser_figure
from sih.training.runs.run_store import RunStore


def test_the_teaser_shows_what_it_says() -> None:
    data = teaser.compute(teaser.TeaserConfig(), RunStore())
    assert [len(tokens) for tokens in data.examples] == [16, 16]
    assert data.weights.sum().item() == pytest.approx(1)
    assert len(data.maps) == 3
    unsure = teaser.compute(teaser.TeaserConfig(concentration=1000.0), RunStore())
    third = unsure.maps[2]
    assert unsure.weights.tolist() == pytest.approx([third[15, 15].item(), third[15, 14].item()])
    assert 0.01 < unsure.weights[1] < 0.99
    arrows = [len(ax.patches) - 2 * data.config.shown for ax in teaser_figure.draw(data).axes[:3]]
    assert arrows == [14, 14, 2]
    check_drawn_from_file(teaser_figure.draw, data)
    more = teaser.compute(teaser.TeaserConfig(lags=(1, 3, 4), true_lag=4, shown=12), RunStore())
    assert more.heads == (1, 4, 1)
    check_drawn_from_file(teaser_figure.draw, more)
    with pytest.raises(
        ValueError, match="shown is between the largest lag and the length of 32; got 40"
    ):
        teaser.compute(teaser.TeaserConfig(shown=40), RunStore())
