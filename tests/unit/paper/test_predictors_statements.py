from __future__ import annotations

import dataclasses

import pytest

from sih.paper import predictors
from sih.paper.predictors import PredictorCurves, PredictorsConfig
from sih.paper.predictors_statements import BMA_TENDS_TO_ML, gap
from sih.predictors.predictors import PREDICTORS
from sih.training.runs.run_store import RunStore


@pytest.fixture(scope="module")
def data() -> PredictorCurves:
    config = dataclasses.replace(
        PredictorsConfig(), lag_sets=((1, 2, 3), (1, 3)), matrices=3, sequences=64
    )
    return predictors.compute(config, RunStore())


def test_a_gap_is_the_mean_over_the_window_and_its_error_is_a_bound(data: PredictorCurves) -> None:
    panel = data.panels[0]
    best, likely = (panel.kl[label].mean.tolist() for label in ("BMA", "ML"))
    apart, error = gap(panel, 4, 8)  # when 4 to 8 tokens are seen: positions 3 to 7
    assert apart == pytest.approx(sum(likely[i] - best[i] for i in range(3, 8)) / 5)
    errors = [panel.kl[label].error.tolist() for label in ("BMA", "ML")]
    assert error == pytest.approx(sum(one[i] for one in errors for i in range(3, 8)) / 5)


def test_bma_tends_to_ml_and_what_does_not_is_told(data: PredictorCurves) -> None:
    found = BMA_TENDS_TO_ML.judge(data)
    assert found.verdict in ("holds", "holds with a remark")
    assert len(found.each) == len(data.panels)
    label = PREDICTORS["ngram"].label  # its KL stays where BMA's goes to 0
    wrong = dataclasses.replace(
        data,
        panels=tuple(
            dataclasses.replace(panel, kl={**panel.kl, "ML": panel.kl[label]})
            for panel in data.panels
        ),
    )
    assert BMA_TENDS_TO_ML.judge(wrong).verdict == "does not hold"
