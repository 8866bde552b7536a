from __future__ import annotations

import pytest

from sih.experiments import head_counts
from sih.figures.head_cells import draw_head_counts
from sih.runs.run_store import RunStore


def test_every_set_is_counted() -> None:
    data = head_counts.compute(head_counts.HeadCountsConfig(largest=6), RunStore())
    assert data.sets == 63
    assert data.unsettled == ()
    assert all(count.lags <= count.heads <= count.span for count in data.counts)
    assert len(draw_head_counts(data).axes) == 2
    with pytest.raises(ValueError, match="at least 1; got 0"):
        head_counts.compute(head_counts.HeadCountsConfig(largest=0), RunStore())
