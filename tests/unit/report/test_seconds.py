from __future__ import annotations

from sih.report.seconds import SECONDS, seconds_of
from sih.report.subjects import figures


def test_what_is_not_measured_counts_as_the_mean() -> None:
    assert SECONDS.keys() == figures().keys(), "python -m benchmarks.figure_seconds measures them"
    assert seconds_of("teaser") == SECONDS["teaser"]
    assert min(SECONDS.values()) < seconds_of("a new one") < max(SECONDS.values())
