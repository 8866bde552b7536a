"""The constructed half of Fig. 4, small: the order of the curves, and a figure from data alone."""

from __future__ import annotations

import dataclasses
import functools

import pytest
from support.pictures import through_file

from sih.paper import constructions, constructions_figure
from sih.paper.over_matrices import panels_over_matrices
from sih.results.curves import Curve, minus
from sih.training.runs.run_store import RunStore


def mean_of(curve: Curve) -> float:
    return curve.whole.mean.item()


@pytest.fixture(scope="module")
def curves() -> constructions.ConstructionCurves:
    return constructions.compute(
        constructions.ConstructionsConfig(
            lag_sets=((1, 2), (1, 3, 4), (2, 3), (1, 3)),
            length=48,
            matrices=3,
            sequences=24,
            run=5,
            laws=("dirichlet",),
        ),
        RunStore(),
    )


def test_the_weights_are_run_on_the_first_matrices(
    curves: constructions.ConstructionCurves,
) -> None:
    """Past the first positions they compute what the drawn curves are of."""
    assert constructions.RUN_MATRICES == 2
    for panel, run in zip(curves.panels, curves.run, strict=True):
        assert panel.kl.keys() == run.kl.keys()
        assert len(run.kl["ML"].overall) == 2
    config = dataclasses.replace(curves.config, sequences=5, matrices=2)
    exact = panels_over_matrices(
        config, functools.partial(constructions.predict, config, weights=False)
    )
    for one, run in zip(exact, curves.run, strict=True):
        for label in one.kl:
            assert one.kl[label].whole.mean.item() == pytest.approx(
                run.kl[label].whole.mean.item(), abs=1e-5
            )


def test_the_bayes_circuit_lies_on_bma(curves: constructions.ConstructionCurves) -> None:
    for panel in curves.panels:
        best, ours = panel.kl["BMA"], panel.kl["Bayes-optimal construction"]
        first = panel.lags[-1] - 1
        assert ours.mean[first:].tolist() == pytest.approx(best.mean[first:].tolist(), abs=1e-5)
        assert mean_of(ours) == pytest.approx(mean_of(best), abs=1e-6)
        assert minus(ours, best).mean.item() == pytest.approx(0, abs=1e-6)


def test_one_head_is_worse_than_enough(curves: constructions.ConstructionCurves) -> None:
    for panel in curves.panels:
        assert (
            mean_of(panel.kl["BMA"])
            < mean_of(panel.kl["construction"])
            < mean_of(panel.kl["construction, 1 head"])
        )
    assert [panel.compared["construction"].heads for panel in curves.panels] == [
        (1, n, 1) for n in (2, 4, 2, 2)
    ]


def test_with_a_sink_it_is_better(curves: constructions.ConstructionCurves) -> None:
    """Prop. 1 to the letter: no head has nothing to average, and beta counts once."""
    for panel in curves.panels:
        assert mean_of(panel.kl[constructions.SINK]) < mean_of(panel.kl["construction"])


def test_figure_and_table_need_only_the_data(curves: constructions.ConstructionCurves) -> None:
    figure = constructions_figure.draw(through_file(curves))
    assert figure.axes[1].get_title() == "lags {1,3,4}, Dirichlet(1) rows, K = 4"
    assert figure.axes[0].get_xlim() == (0, 48)
    words = constructions_figure.caption(curves.config)
    assert "T = 48" in words
    assert "3 random matrices" in words
    rows = {row[0]: row for row in constructions_figure.table(curves)}
    assert len(rows) == 8
    assert rows["two lags, 1 head"][2] == ""  # not for three lags
