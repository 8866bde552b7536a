"""The kept samples are what the check of App. E gives: some matrices are sampled anew."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch

from sih.claim.claim_histogram import ClaimConfig, printed_check, sampled_matrix
from sih.claim.monte_carlo import MonteCarlo, estimates
from sih.claim.sampled import kept_checks, sampled_bars, sampled_gaps

PAPERS = printed_check(ClaimConfig())


def test_what_is_kept_is_the_papers_check() -> None:
    ten, more = kept_checks()
    assert dataclasses.replace(ten, matrices=1000) == PAPERS
    assert (ten.form, ten.sequences, ten.length, ten.matrix_law) == (
        "printed",
        1000,
        1000,
        "uniform",
    )
    assert (more.num_states, more.matrices) == (25, 10)


@pytest.mark.parametrize("number", [0, 7])
def test_some_matrices_are_sampled_anew(number: int) -> None:
    kept = sampled_gaps(PAPERS)
    assert kept is not None
    anew = sampled_matrix(next(estimates(PAPERS, first=number)), PAPERS.lags)
    torch.testing.assert_close(kept[number], anew.gaps, rtol=0, atol=1e-7)


def test_the_bars_are_means_of_the_kept_matrices() -> None:
    """The gaps of the mean are near the mean of the gaps, which are lower: a maximum is taken of each."""
    check = dataclasses.replace(PAPERS, matrices=10)
    bars, gaps = sampled_bars(check), sampled_gaps(check)
    assert bars is not None
    assert gaps is not None
    assert len(gaps) == 10
    assert bars.sum(dim=1).tolist() == pytest.approx([1.0] * 12, abs=1e-6)
    for k in range(12):
        others = [bars[k, r].item() for r in range(12) if r != k]
        gap = bars[k, k].item() - max(others)
        assert gaps[:, k].mean().item() <= gap < gaps[:, k].mean().item() + 0.004


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"matrix_law": "dirichlet"},
        {"sequences": 10},
        {"num_states": 4},
        {"form": "trimmed"},
    ],
)
def test_nothing_is_kept_of_other_checks(change: dict[str, object]) -> None:
    other: MonteCarlo = dataclasses.replace(PAPERS, matrices=10, **change)  # type: ignore[arg-type]
    assert sampled_gaps(other) is None
    assert sampled_bars(other) is None


def test_the_error_of_a_gap_is_the_sum_of_both() -> None:
    found = next(itertools.islice(estimates(dataclasses.replace(PAPERS, sequences=50)), 1))
    gaps = sampled_matrix(found, PAPERS.lags)
    for k in range(12):
        means = found.mean[k].tolist()
        rival = max((r for r in range(12) if r != k), key=lambda r: means[r])
        assert gaps.gaps[k].item() == pytest.approx(means[k] - means[rival])
        both = found.error[k, k] + found.error[k, rival]
        assert gaps.error[k].item() == pytest.approx(both.item())
