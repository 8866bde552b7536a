from __future__ import annotations

from collections import Counter

import pytest
from support.oracles_heads import SMALL, some_assignment

from sih.paper import heads as head_counts
from sih.paper import heads_figure
from sih.training.runs.run_store import RunStore


def least(lags: tuple[int, ...]) -> int:
    """The fewest heads that some assignment of 16 offsets has, tried one by one."""
    return next(heads for heads in range(1, 6) if some_assignment(lags, 16, heads) is not None)


def test_counts_against_every_assignment() -> None:
    found = head_counts.compute(head_counts.HeadCountsConfig(largest=5), RunStore())
    wanted = Counter((len(lags), max(lags) - min(lags) + 1, least(lags)) for lags in SMALL)
    assert {(one.lags, one.span, one.heads): one.sets for one in found.counts} == wanted


def test_every_set_is_counted() -> None:
    data = head_counts.compute(head_counts.HeadCountsConfig(largest=6), RunStore())
    assert data.sets == 63
    assert data.unsettled == ()
    assert all(count.lags <= count.heads <= count.span for count in data.counts)
    assert len(heads_figure.draw(data).axes) == 2
    with pytest.raises(ValueError, match="at least 1; got 0"):
        head_counts.compute(head_counts.HeadCountsConfig(largest=0), RunStore())
