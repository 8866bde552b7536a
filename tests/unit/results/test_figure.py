"""A figure names who draws it: two of them may show one experiment's data."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from support.small_experiments import HISTOGRAM, counted
from support.toy_figure import FIGURES, STATEMENTS

from sih.claim import claim_histogram_figure
from sih.report import subjects
from sih.results.figure import Figure, shown
from sih.results.pictures import make
from sih.training.runs.run_store import RunStore


def test_a_figure_has_the_name_and_the_neighbour_of_its_experiment() -> None:
    figure = shown(HISTOGRAM)
    assert (figure.name, figure.module) == ("claim_histogram", claim_histogram_figure)
    assert figure.caption == claim_histogram_figure.caption(HISTOGRAM.config)
    assert "4 with 3 states" in figure.caption  # of the task that is asked for
    assert figure.with_seed(3).experiment.config.seed == 3


def test_a_figure_of_another_task_has_another_name() -> None:
    figure = shown(HISTOGRAM)
    assert figure.asking() is figure.asking(num_states=3) is figure
    other = figure.asking(num_states=4, lags=(1, 3))
    assert other.name == other.experiment.name
    assert re.fullmatch(r"claim_histogram-[0-9a-f]{8}", other.name)
    assert other.name == figure.asking(lags=(1, 3), num_states=4).name
    assert other.name != figure.asking(num_states=5, lags=(1, 3)).name
    assert subjects.resting_on(other.experiment) == []
    second = dataclasses.replace(figure, name="toy").asking(num_states=4, lags=(1, 3))
    assert second.name == other.name.replace("claim_histogram", "toy")


def test_listing_figures_draws_nothing() -> None:
    figure = Figure("later", HISTOGRAM, "nobody.has.written_it")
    assert figure.name == "later"
    with pytest.raises(ModuleNotFoundError):
        _ = figure.caption


def test_one_experiments_data_may_be_drawn_twice(tmp_path: Path) -> None:
    """A second drawing is a file more, the first stays, and nothing is computed again."""
    experiment, calls = counted(HISTOGRAM)
    first = dataclasses.replace(shown(HISTOGRAM), experiment=experiment)
    second = dataclasses.replace(FIGURES[0], experiment=experiment)
    made = [make(figure, tmp_path, RunStore()) for figure in (first, second)]
    assert [one.result.computed for one in made] == [True, False]
    assert len(calls) == 1
    names = [path.name for one in made for path in one.pictures if path.suffix == ".png"]
    assert names == ["claim_histogram.png", "toy.png"]
    assert made[1].tables[0].read_text().splitlines()[0] == "true lag,smallest gap"


def test_a_figure_and_a_statement_are_a_file_and_a_line(tmp_path: Path) -> None:
    with_toy = (*subjects.SUBJECTS, sys.modules["support.toy_figure"])
    assert subjects.figures(with_toy).keys() - subjects.figures().keys() == {"toy"}
    ids = list(subjects.statements(with_toy))
    assert set(ids) - subjects.statements().keys() == {"toy-gap"}
    assert ids.index("claim-1") < ids.index("toy-gap") < ids.index("one-head-kl")
    resting = subjects.resting_on(HISTOGRAM, with_toy)
    assert [one.id for one in resting] == ["claim-1", "toy-gap"]
    result = make(shown(HISTOGRAM), tmp_path, RunStore()).result
    assert STATEMENTS[0].judge(result.data).count.endswith("of 3")
    with pytest.raises(ValueError, match="'toy' stands twice"):
        subjects.figures((*with_toy, with_toy[-1]))
