"""How strong masks must be, and what they leak."""

from __future__ import annotations

import math

import pytest

import sih
from sih.circuits.mask_strength import LEAK, leaks, least_strength, log_leaks

TASK = sih.Task([[0.8, 0.2], [0.5, 0.5]], (1, 2), 20)


def test_the_least_strength_lets_through_what_it_may() -> None:
    """For beta 50 the third layer decides, by its two heads; for beta 0.1 the first, by the smallest entry of P."""
    third = sih.construct(TASK, beta=50.0).circuit
    assert log_leaks(third, TASK)[1] == pytest.approx(math.log(20) + 2 * 50)
    first = sih.construct(TASK, beta=0.1).circuit
    assert log_leaks(first, TASK)[0] == pytest.approx(math.log(20) - math.log(0.2))
    for circuit in (third, first):
        leaked = max(log_leaks(circuit, TASK)) - 2 * least_strength(circuit, TASK)
        assert math.exp(leaked) == pytest.approx(LEAK)


def test_scores_that_hold_the_prior_need_more() -> None:
    prior = sih.construct(TASK, target="bayes").circuit
    logs = -100.0 * 0  # the smallest entry is possible: no number stands for a zero
    gap = prior.temper * (math.log(0.8) - math.log(0.2)) + logs
    assert log_leaks(prior, TASK)[0] == pytest.approx(math.log(20) + math.log(2) + gap)


def test_what_leaks_falls_with_the_strength() -> None:
    weak, strong = (sih.construct(TASK, beta=3.0, lam=lam).circuit for lam in (20.0, 40.0))
    (first, all_weak), (other, all_strong) = leaks(weak, TASK), leaks(strong, TASK)
    assert first == pytest.approx(20 / 0.2 * math.exp(-40))
    assert other == pytest.approx(first * math.exp(-40))
    assert 0 < all_strong < all_weak
