from __future__ import annotations

import pytest

from sih.base.stats import wilson
from sih.beyond.sweep import success_rates_figure
from sih.beyond.sweep.success_rates import Outcome, success_rates

ENDED = [
    Outcome("a", {"seed": 0, "lags": (1, 2)}, "finished", 9, 0.12, 0.1, 0.05, 10.0),
    Outcome("b", {"seed": 1, "lags": (1, 2)}, "finished", 9, 0.121, 0.1, 0.05, 30.0),
    Outcome("c", {"seed": 0, "lags": (1, 3)}, "failed: memory", 3, 0.1, 0.1, 0.05, 5.0),
    Outcome("d", {"seed": 1, "lags": (1, 3)}, "unfinished", 3, 0.1, 0.1, 0.05, 5.0),
    Outcome("e", {"seed": 2, "lags": (1, 3)}, "finished", 3, 0.0, 0.0, 0.0, 5.0),
]


def test_repetitions_are_counted_together_and_a_failed_run_counts_as_no_success() -> None:
    first, second = success_rates(ENDED).settings
    assert (first.label, first.runs, first.succeeded, first.core_seconds) == (
        "lags {1,2}",
        2,
        1,
        20.0,
    )
    assert first.ratios == (0.12 / 0.1, 0.121 / 0.1)
    assert (second.label, second.runs, second.succeeded) == ("lags {1,3}", 2, 0)
    assert second.interval == pytest.approx(
        (0, 1.96**2 / (2 + 1.96**2))
    )  # p^2 = 1.96^2 p (1 - p) / 2
    assert len(success_rates_figure.draw(success_rates(ENDED)).axes) == 2


def test_wilson_solves_its_equation_and_holds_what_it_says() -> None:
    for successes, trials in ((0, 7), (3, 7), (7, 7), (95, 100)):
        for end in wilson(successes, trials):
            if 0 < end < 1:
                distance = abs(end - successes / trials)
                assert abs(distance - 1.96 * (end * (1 - end) / trials) ** 0.5) < 1e-12
    assert wilson(0, 0) == (0.0, 1.0)
