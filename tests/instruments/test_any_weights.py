"""Exact circuits from any positive weights of one head, and what they cost."""

import csv
import doctest
from pathlib import Path

import pytest
import torch

from research import any_weights
from research.any_weights import profile_from_weights, relative_sizes
from sih.heads.mixing import mixing_profile

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("count", range(2, 9))
def test_any_positive_weights_of_one_head_are_part_of_an_exact_circuit(count: int) -> None:
    drawn = 0.5 + torch.rand(
        64, generator=torch.Generator().manual_seed(count), dtype=torch.float64
    )

    def weight(o: torch.Tensor) -> torch.Tensor:
        return drawn[(o % 64).long()]

    found = profile_from_weights(count, 40, weight)
    assert found.heads == count - 1
    assert torch.allclose(found.weights[0], drawn[: 40 - count], rtol=1e-12)
    assert found.weights.min() > 0
    assert found.residual.max() < 1e-9


@pytest.mark.parametrize("count", [2, 3, 6])
def test_uniform_weights_give_the_closed_form(count: int) -> None:
    closed, found = (
        mixing_profile(tuple(range(1, count + 1)), 40),
        profile_from_weights(count, 40, torch.ones_like),
    )
    assert torch.allclose(found.weights[0], closed.weights[0])
    for read in (
        found.query,
        closed.query,
    ):  # rank of the curvature: the same functions of the index
        curves = read[:, 2:] - 2 * read[:, 1:-1] + read[:, :-2]
        assert torch.linalg.matrix_rank(curves, tol=1e-8) == count - 1
    both = torch.cat([r[:, 2:] - 2 * r[:, 1:-1] + r[:, :-2] for r in (found.query, closed.query)])
    assert torch.linalg.matrix_rank(both, tol=1e-8) == count - 1
    assert found.size == pytest.approx(closed.size, rel=0.01)


def test_no_choice_saves_more_than_a_ninth() -> None:
    """Two lags: at least T^3 / 9 for any weights, by Cauchy and Schwarz (T the number of offsets, near enough)."""
    rng = torch.Generator().manual_seed(0)
    for _ in range(5):
        rough = torch.randn(65, generator=rng, dtype=torch.float64).cumsum(0) / 8

        def weight(o: torch.Tensor, rough: torch.Tensor = rough) -> torch.Tensor:
            return rough[(o / 2).long()].exp()

        assert profile_from_weights(2, 128, weight).size >= 126**3 / 9
    for count in (2, 5):
        sizes = relative_sizes(count, 96)
        assert 8 / 9 < sizes["best arched weights"] < 1
        assert sizes["reads not moved"] > 7
        assert abs(sizes["eta 0.5"] - 1) < 0.03


def test_the_table_has_the_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sizes.csv"
    assert any_weights.main(["--counts", "2", "4", "--length", "24", "--out", str(out)]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["K"] for row in rows] == ["2", "4"]
    for row in rows:
        sizes = relative_sizes(int(row.pop("K")), 24)
        assert {name: float(cell) for name, cell in row.items()} == pytest.approx(sizes, abs=6e-4)
    assert any_weights.main(["--counts", "1", "--out", str(out)]) == 2
    assert "numbers of lags, 2 or more, e.g. 2 3 4; got 1" in capsys.readouterr().err


def test_its_example_runs() -> None:
    assert doctest.testmod(any_weights) == (0, 1)


def test_the_kept_table_is_of_its_closed_form() -> None:
    kept = Path(any_weights.__file__).with_suffix(".csv").read_text().splitlines()
    row = next(csv.DictReader(kept))
    assert float(row["closed form"]) == pytest.approx(mixing_profile((1, 2), 128).size, abs=1e-3)
