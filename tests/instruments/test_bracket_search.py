from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from research import bracket_search
from sih.beyond.shared_heads.brackets import EXACT, read_brackets
from sih.heads.read_fit import ReadProblem

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bracket_search, "LENGTH", 20)


def test_a_circuit_is_found_where_there_is_one() -> None:
    assert (
        bracket_search.best_residual((1, 2, 5), 3, key=False) < EXACT
    )  # four by colouring and by the closed form
    assert (
        bracket_search.best_residual((1, 2, 3), 1, key=False) > 0.1
    )  # one head is exact for two lags only


def test_a_table_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    first = list(bracket_search.extend(path, reach=3))
    assert [(found.lags, found.lower, found.closed) for found in first] == [
        ((1, 2), 1, 1),
        ((1, 2, 3), 2, 2),
    ]
    assert list(bracket_search.extend(path, reach=3)) == []
    (both,) = bracket_search.extend(path, reach=3, both_up_to=3)
    assert both.lags == (1, 2, 3)
    assert both.query == {}
    assert list(both.both) == [1]
    assert both.both[1] > EXACT  # near, not exact
    assert read_brackets(path) == [first[0], both]


@pytest.mark.parametrize("reach", [0, 1, 17, 10**9])
def test_a_table_of_more_sets_than_can_be_listed_is_refused(tmp_path: Path, reach: int) -> None:
    with pytest.raises(ValueError, match="reach is the largest lag of the table, 2 to 16"):
        next(bracket_search.extend(tmp_path / "t.json", reach))


def test_a_search_goes_on_with_fewer_heads_until_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bracket_search, "best_residual", lambda lags, heads, key: 0.0 if heads > 2 else 1.0
    )
    assert bracket_search._downwards((1, 2, 5), 5, 1, key=True) == {5: 0.0, 4: 0.0, 3: 0.0, 2: 1.0}
    assert bracket_search._downwards((1, 2, 5), 5, 4, key=True) == {5: 0.0, 4: 0.0}


def test_a_residual_is_the_largest_norm_at_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is read, J F J - J is -J at every offset: its norm is the root of its trace."""

    def unread(problem: ReadProblem, weights: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor]:
        starts, heads = weights.shape[:2]
        return (
            weights,
            torch.zeros(starts, 2, heads, problem.size, dtype=torch.float64),
            torch.zeros(starts),
        )

    monkeypatch.setattr(bracket_search, "fitted", unread)
    assert bracket_search.best_residual((1, 2, 5), 2, key=True) == pytest.approx(2**0.5, abs=1e-12)


def test_it_goes_on_with_a_file_and_refuses_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.json"
    for reach, found in (("2", 1), ("3", 1), ("3", 0)):
        assert bracket_search.main([str(table), "--reach", reach, "--both-up-to", "0"]) == 0
        assert capsys.readouterr().out.count("Bracket(") == found
    whole = table.read_bytes()
    assert bracket_search.main([str(table), "--reach", "1"]) == 2
    assert "reach is the largest lag of the table, 2 to 16; got 1" in capsys.readouterr().err
    (tmp_path / "u.json").write_text("[]")
    assert bracket_search.main([str(tmp_path / "u.json")]) == 2
    assert "u.json is no table of brackets" in capsys.readouterr().err
    assert table.read_bytes() == whole
