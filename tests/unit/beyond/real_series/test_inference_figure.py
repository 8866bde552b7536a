from __future__ import annotations

import numpy as np
import pytest

import sih
from sih.beyond.real_series.inference_figure import draw_inference


def test_intervals_and_curves_are_the_records() -> None:
    series = sih.sample(
        sih.Task(sih.random_transition_matrix(3, rng=0), (1, 2), 120), 1, rng=0, lag=2
    ).tokens[0]
    found = sih.infer(series, (1, 2), num_states=3)
    left, right = draw_inference(found).axes
    assert len(left.lines) == 2
    assert list(np.asarray(left.lines[1].get_ydata()))[-1] == pytest.approx(
        found.posterior[1].item()
    )
    for after, container in enumerate(right.containers):
        assert np.asarray(container[0].get_ydata()).tolist() == pytest.approx(
            found.P[:, after].tolist()
        )


def test_many_states_and_lags_are_cut() -> None:
    found = sih.infer(list(range(20)) * 3, tuple(range(1, 15)))
    left, right = draw_inference(found).axes
    assert len(left.lines) == 12
    assert len(right.containers) == 8
    assert "8 of 20 states" in right.get_title()


def test_no_lag_is_named_where_no_token_counts() -> None:
    right = draw_inference(sih.infer([0, 1], (1, 5))).axes[1]
    assert right.get_title() == "$P$ of the prior, 95 % intervals"
    assert right.get_xlabel() == "earlier state"
