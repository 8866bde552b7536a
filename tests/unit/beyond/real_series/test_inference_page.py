from __future__ import annotations

import pytest

import sih
from sih.beyond.real_series.inference_page import inference_page


@pytest.mark.parametrize(
    ("nats", "odds"), [(0.0, "1 : 1"), (2.302585093, "10 : 1"), (-1000.0, "10^-434 : 1")]
)
def test_numbers_on_the_page(nats: float, odds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sih.infer([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], (1, 2))
    found.bayes_factors["independent"] = nats
    page = inference_page("a series", ("a", "b"), found, None, b"png")
    assert odds in page
    low, high = found.interval[0, 1].tolist()
    assert f"{found.P[0, 1]:.3f} [{low:.3f}, {high:.3f}]" in page
    assert "<td>a</td>" in page
    assert "shuffle" not in page
    test = sih.permutation_test([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], (1, 2), rng=0, permutations=3)
    assert "(3 shuffles; null: order" in inference_page("a series", ("a", "b"), found, test, b"png")


def test_a_page_of_a_series_too_short() -> None:
    page = inference_page("a series", ("a", "b"), sih.infer([0, 1], (1, 5)), None, b"png")
    assert "no token counts" in page
    assert "None" not in page
    assert "against other models" not in page
