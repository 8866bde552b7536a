"""The constructed half of Fig. 4, small: the order of the curves, and a figure from data alone."""

from __future__ import annotations

import pytest

from sih.experiments import constructions
from sih.figures.kl_curves import draw_constructions
from sih.runs.run_store import RunStore


@pytest.fixture(scope="module")
def curves() -> constructions.ConstructionCurves:
    return constructions.compute(
        constructions.ConstructionsConfig(
            lag_sets=((1, 2), (1, 3, 4), (2, 3), (1, 3)), length=48, matrices=3, sequences=24
        ),
        RunStore(),
    )


def test_the_bayes_circuit_lies_on_bma(curves: constructions.ConstructionCurves) -> None:
    for panel, lags in enumerate(curves.config.lag_sets):
        best, ours = curves.kl[panel]["BMA"], curves.kl[panel]["Bayes-optimal construction"]
        assert ours[lags[-1] - 1 :] == pytest.approx(best[lags[-1] - 1 :], abs=1e-5)
        assert curves.mean[panel]["BMA"] == pytest.approx(curves.mean[panel]["Bayes-optimal construction"], abs=1e-6)


def test_one_head_is_worse_than_enough(curves: constructions.ConstructionCurves) -> None:
    for mean in curves.mean:
        assert mean["BMA"] < mean["construction"] < mean["construction, 1 head"]
    assert [heads["construction"] for heads in curves.heads] == [2, 4, 2, 2]


def test_figure_and_table_need_only_the_data(curves: constructions.ConstructionCurves) -> None:
    figure = draw_constructions(curves)
    assert figure.axes[1].get_title() == "lags {1,3,4}, least heads: 4"
    assert [len(row) for row in constructions.against_ml(curves)] == [4] * 5
    rows = constructions.table(curves)
    assert len(rows) == 7
    assert rows[5][2] == ""  # two lags, one head: not for three lags
