"""Statements on the number of heads needed (Sec. 5.4)."""

from __future__ import annotations

from sih.paper import heads as heads
from sih.paper.heads import HeadCounts
from sih.results.judging import BEYOND, Measured, Rule, Statement


def _sets_outside(data: HeadCounts) -> list[Measured]:
    outside = sum(one.sets for one in data.counts if not one.lags <= one.heads <= one.span)
    return [Measured(outside + len(data.unsettled), None, f"of {data.sets:,} lag sets")]


def _sets_below(data: HeadCounts) -> list[Measured]:
    below = sum(one.sets for one in data.counts if one.heads < one.span)
    return [Measured(below, None, f"of {data.sets:,} lag sets")]


HEAD_RANGE = Statement(
    "head-range", "Sec. 5.4",
    "Lags that are not contiguous need between as many heads as lags and the largest minus the smallest lag plus one.",
    heads.EXPERIMENT, _sets_outside, Rule("at most", 0, 0), "lag sets",
    "lag sets within 1 .. 12 whose least number of heads is outside that range (each least number proved)",
)  # fmt: skip

FEWER_HEADS = Statement(
    "ours-fewer-heads", BEYOND,
    "The least number of heads is the chromatic number of a distance graph of the integers: often fewer than the "
    "largest minus the smallest lag plus one.",
    heads.EXPERIMENT, _sets_below, Rule("at least", 1, 1), "lag sets",
    "lag sets within 1 .. 12 that need fewer heads than that",
)  # fmt: skip

STATEMENTS = (HEAD_RANGE, FEWER_HEADS)
