from __future__ import annotations

import pytest
import torch
from support.pictures import check_drawn_from_file

import sih
from sih.paper import teaser, teaser_figure
from sih.training.runs.run_store import RunStore


def test_the_teaser_shows_a_trained_model_of_its_task() -> None:
    data = teaser.compute(teaser.TeaserConfig(), RunStore())
    run = sih.open_run("teaser-1.2")
    assert [len(tokens) for tokens in data.examples] == [16, 16]
    with torch.no_grad():
        attention = run.model.trace(data.tokens[None]).attention
    for layer, found in zip(data.maps, attention, strict=True):
        assert layer.tolist() == found[0, 0, :31, :31].double().tolist()
    third = data.maps[2]
    assert data.weights.tolist() == [third[15, 15].item(), third[15, 14].item()]
    assert run.evaluation is not None
    assert run.evaluation.found  # the caption speaks of a circuit
    assert data.weights[1] > 0.9
    assert not data.as_in_the_paper
    assert data.heads == (1, 1, 1)
    arrows = [len(ax.patches) - 2 * data.config.shown for ax in teaser_figure.draw(data).axes[:3]]
    assert arrows == [14, 14, 2]
    check_drawn_from_file(teaser_figure.draw, data)


def test_it_may_be_of_another_model() -> None:
    config = teaser.TeaserConfig("paper-1.3.4-length32", true_lag=4, shown=12)
    data = teaser.compute(config, RunStore())
    assert (data.lags, data.heads, data.as_in_the_paper) == ((1, 3, 4), (1, 4, 1), True)
    check_drawn_from_file(teaser_figure.draw, data)


def test_what_cannot_be_drawn_is_refused(runs: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="shown is at least the largest lag and below the length"):
        teaser.compute(teaser.TeaserConfig(shown=32), RunStore())
    with pytest.raises(ValueError, match="the model has three layers"):
        teaser.compute(teaser.TeaserConfig(runs["two-layers"], shown=10), RunStore())
