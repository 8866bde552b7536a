"""Mean KL of the predictors at the paper's settings: known values come out again, within sampling error."""

from __future__ import annotations

import math

import pytest
from support.pictures import through_file

from sih.paper import predictors, predictors_figure
from sih.predictors.predictors import PREDICTORS
from sih.training.runs.run_store import RunStore

# T = 128, S = 5, Dirichlet(1) rows, positions past the first max_lag; from an independent computation of similar size.
KNOWN = {
    (1, 2, 3): {
        "BMA": 0.0077,
        "ML": 0.0131,
        "selective, mean (β=100)": 0.0112,
        "selective, sum (β=3)": 0.0084,
    },
    (1, 3): {"BMA": 0.0048, "ML": 0.0074, "selective, mean (β=100)": 0.0065},
    (1, 2, 3, 4, 5): {"BMA": 0.0115, "ML": 0.0207, "selective, mean (β=100)": 0.0168},
}


@pytest.fixture(scope="module")
def curves() -> predictors.PredictorCurves:
    return predictors.compute(
        predictors.PredictorsConfig(
            lag_sets=tuple(KNOWN), matrices=12, sequences=256, laws=("dirichlet",)
        ),
        RunStore(),
    )


def test_mean_kl_of_the_predictors(curves: predictors.PredictorCurves) -> None:
    for panel, known in zip(curves.panels, KNOWN.values(), strict=True):
        for name, value in known.items():
            # Both are means over a dozen matrices or so: 4 standard errors of the difference.
            mean, error = panel.kl[name].whole.pair()
            assert mean == pytest.approx(value, abs=4 * math.sqrt(2) * error)


def test_the_order_of_the_predictors(curves: predictors.PredictorCurves) -> None:
    for panel in curves.panels:
        ordered = ("BMA", "selective, mean (β=100)", "ML", "stationary distribution")
        assert sorted(ordered, key=lambda name: panel.kl[name].whole.pair()) == list(ordered)


def test_the_figure_and_table_need_only_the_data(curves: predictors.PredictorCurves) -> None:
    figure = predictors_figure.draw(through_file(curves))
    titles = ["lags {1,2,3}, Dirichlet(1) rows", "lags {1,3}, Dirichlet(1) rows"]
    assert [ax.get_title() for ax in figure.axes][:2] == titles
    for ax in figure.axes[:3]:  # the paper's axes
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, 128), (1e-4, 1))
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == set(curves.panels[0].kl)
    assert "5 states" in predictors_figure.caption(curves.config)
    assert [ax.get_visible() for ax in figure.axes] == [True, True, True, False]
    assert [row[0] for row in predictors_figure.table(curves)[1:]] == [
        one.label for one in PREDICTORS.values()
    ]
