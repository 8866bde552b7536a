from __future__ import annotations

import pytest

import sih


def test_a_lag_task_shows_its_matrix_its_law_and_a_row_of_arcs_for_each_lag() -> None:
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 3), length=32, lag_prior=(0.25, 0.75))
    matrix, law, *rows = task.plot().axes
    assert [text.get_text() for text in matrix.texts] == ["0.90", "0.10", "0.40", "0.60"]
    assert [text.get_text() for text in law.texts] == ["0.80", "0.20"]
    assert [ax.get_title(loc="left") for ax in rows] == [
        "lag 1, probability 0.25",
        "lag 3, probability 0.75",
    ]
    for lag, ax in zip(task.lags, rows, strict=True):
        arcs = [line.get_xdata() for line in ax.lines if len(line.get_xdata()) > 1]
        assert len(arcs) == 9
        assert {round(float(arc[-1] - arc[0])) for arc in arcs} == {lag}


@pytest.mark.parametrize(("hypotheses", "rows"), [(2, 2), (9, 6)])
def test_any_parents(hypotheses: int, rows: int) -> None:
    task = sih.ParentsTask(
        [[0.9, 0.1], [0.4, 0.6]], sih.random_parents(hypotheses, 20, rng=0, distinct=False)
    )
    figure = task.plot()
    assert len(figure.axes) == 2 + rows
    assert ("hypotheses more" in figure.subfigs[-1]._supxlabel.get_text()) == (hypotheses > rows)


def test_many_states_have_no_numbers() -> None:
    task = sih.Task(sih.random_transition_matrix(30, rng=0), lags=(2, 12), length=16)
    matrix, *_ = task.plot().axes
    assert len(matrix.texts) == 0
