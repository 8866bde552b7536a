"""Which lag, P unknown: against sums over all matrices on a grid, plain loops, and the tracker of fresh matrices."""

from __future__ import annotations

import itertools
import math

import mpmath  # comes with torch
import numpy as np
import pytest
import torch

import sih
from sih.beyond.real_series.inference_figure import draw_inference

ALPHA = 0.7


def looped(
    parts: list[list[int]], lags: tuple[int, ...], states: int, alpha: float
) -> tuple[list[list[float]], float, float]:
    """Log-probabilities token by token, straight from the definition: by lag, of independence, of the full chain."""
    counts: dict[object, list[int]] = {}
    logs: dict[object, list[float]] = {model: [] for model in (*lags, "independent", "markov")}
    for part in parts:
        for i, token in enumerate(part):
            window = tuple(part[max(0, i - lags[-1]) : i])
            if len(window) < lags[-1] or -1 in window or token == -1:
                for lag in lags:
                    logs[lag].append(0.0)
                continue
            for model in logs:
                parent = (
                    window[-model]
                    if isinstance(model, int)
                    else window
                    if model == "markov"
                    else None
                )
                row = counts.setdefault((model, parent), [0] * states)
                logs[model].append(math.log((row[token] + alpha) / (sum(row) + states * alpha)))
                row[token] += 1
    return [logs[lag] for lag in lags], math.fsum(logs["independent"]), math.fsum(logs["markov"])


@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 5), (1,)])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_evidence_is_the_definitions(lags: tuple[int, ...], gaps: float) -> None:
    rng = torch.Generator().manual_seed(len(lags))
    parts = []
    for length in (60, 3, 41):
        part = torch.randint(0, 3, (length,), generator=rng)
        part[torch.rand(length, generator=rng) < gaps] = -1
        parts.append(part.tolist())
    prior = torch.arange(1.0, len(lags) + 1) / sum(range(1, len(lags) + 1))
    found = sih.infer(parts, lags, num_states=3, concentration=ALPHA, lag_prior=prior)
    by_lag, independent, markov = looped(parts, lags, 3, ALPHA)
    totals = [math.fsum(row) for row in by_lag]
    assert found.log_evidence.tolist() == pytest.approx(totals, abs=1e-10)
    assert found.lag is not None
    best = lags.index(found.lag)
    assert found.bayes_factors["independent"] == pytest.approx(totals[best] - independent, abs=1e-9)
    assert found.bayes_factors["markov"] == pytest.approx(totals[best] - markov, abs=1e-9)
    joint = [[math.exp(total) * float(p) for total, p in zip(itertools.accumulate(column), [p] * 104, strict=True)]
             for column, p in zip(by_lag, prior, strict=True)]  # fmt: skip
    for place in (0, 30, 62, 103):
        weights = [column[place] for column in joint]
        expected = [weight / sum(weights) for weight in weights]
        assert found.along[place].tolist() == pytest.approx(expected, abs=1e-10)
    assert found.posterior.tolist() == pytest.approx(found.along[-1].tolist(), abs=1e-12)


def test_evidence_is_the_mean_over_matrices() -> None:
    """Two states: the likelihood averaged over the uniform law of both rows, by a midpoint rule."""
    series = [0, 1, 1, 0, 1, 0, 0, 1, 1]
    grid = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    for lag in (1, 2):
        likelihood = torch.ones(2, 2000, dtype=torch.float64)  # by row of P, its chance of 1
        for i in range(2, len(series)):
            parent, child = series[i - lag], series[i]
            likelihood[parent] *= grid if child else 1 - grid
        by_grid = likelihood.mean(dim=1).log().sum().item()
        found = sih.infer(series, (1, 2))
        assert found.log_evidence[(1, 2).index(lag)].item() == pytest.approx(by_grid, abs=1e-5)


def test_a_single_whole_series_is_the_fresh_task() -> None:
    task = sih.FreshTask(4, (1, 2, 4), 80, concentration=0.5)
    batch = sih.sample(task, 2, rng=0)
    for tokens in batch.tokens:
        along = sih.infer(tokens, task.lags, num_states=4, concentration=0.5).along
        torch.testing.assert_close(
            along, sih.lag_posterior(tokens[None], task)[0], rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("concentration", [0.5, 1.0, 40.0])
def test_the_ends_of_intervals_by_high_precision(concentration: float) -> None:
    tokens = torch.randint(3, (200,), generator=torch.Generator().manual_seed(0))
    found = sih.infer(tokens, lags=(1, 2), concentration=concentration)
    made = found.transitions.double() + concentration
    left = made.sum(dim=1, keepdim=True) - made
    for cell in ((0, 0), (1, 2), (2, 1)):
        for end, q in zip(found.interval[cell].tolist(), (0.025, 0.975), strict=True):
            shapes = (made[cell].item(), left[cell].item())
            assert float(mpmath.betainc(*shapes, 0, end, regularized=True)) == pytest.approx(q)


def test_the_matrix_and_its_intervals() -> None:
    """Of 95 % intervals about 95 % hold the truth: 4 matrices of 9 entries each, beyond 3.5 errors in 1 of 2,000."""
    inside, rng = 0, torch.Generator().manual_seed(3)
    for _ in range(4):
        P = sih.random_transition_matrix(3, rng=rng)
        series = sih.sample(sih.Task(P, (1, 3), 400), 1, rng=rng, lag=3).tokens[0]
        found = sih.infer(series, (1, 3))
        assert found.lag == 3
        assert found.transitions.sum() == found.counted == 397
        torch.testing.assert_close(found.P.sum(dim=1), torch.ones(3, dtype=torch.float64))
        low, high = found.interval.unbind(dim=-1)
        assert ((low < found.P) & (high > found.P)).all()
        inside += int(((low <= P) & (high >= P)).sum())
    assert abs(inside - 0.95 * 36) < 3.5 * math.sqrt(36 * 0.95 * 0.05)


def test_verdicts() -> None:
    rng = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 4, (500,), generator=rng)
    assert sih.infer(noise, (1, 2, 3)).verdict.startswith("no lag: independent tokens")
    lagged = sih.sample(
        sih.Task([[0.9, 0.1], [0.2, 0.8]], (1, 2, 3), 500), 1, rng=rng, lag=2
    ).tokens[0]
    assert sih.infer(lagged, (1, 2, 3)).verdict.startswith("lag 2, with posterior 1.000")
    both = [0, 1]  # the exclusive or of the last two: neither lag says anything, both together all
    for i in range(2, 400):
        flip = int(torch.rand((), generator=rng) < 0.02)
        both.append((both[i - 1] ^ both[i - 2]) ^ flip)
    found = sih.infer(both, (1, 2))
    assert found.verdict.startswith("no single lag: a full chain of order 2")
    assert sih.infer(noise, (2,)).verdict.startswith(
        "no lag: independent tokens explain the series better than lag 2 ("
    )


def test_nothing_counted_names_no_lag() -> None:
    found = sih.infer([0, 1], (1, 5))
    assert (found.lag, found.tied, found.counted) == (None, (), 0)
    assert found.verdict == "no token counts: the series says nothing of its lag"
    assert repr(found).startswith("Inference(lag=None, independent=0")


def test_lags_that_explain_a_series_alike_are_a_tie() -> None:
    found = sih.infer([0, 1] * 30, (1, 2))
    assert found.tied == (1, 2)
    assert found.verdict.startswith(
        "lags 1 and 2 explain it alike, with posteriors 0.500 and 0.500 ("
    )
    assert found.verdict.endswith("nats over independence, level with a chain of order 2)")
    assert "tied=(1, 2)" in repr(found)
    assert sih.infer([0, 0, 1, 1] * 30, (1, 2, 4)).tied == (2, 4)


@pytest.mark.parametrize(("nats", "tied"), [(2.99, (1, 2)), (3.01, ())])
@pytest.mark.parametrize("best", [0, 1])
def test_a_tie_ends_at_three_nats(nats: float, tied: tuple[int, ...], best: int) -> None:
    """A prior that is so many nats against the other lag decides between two that a series explains alike."""
    prior = [1 / (1 + math.exp(-nats)), 1 / (1 + math.exp(nats))]
    found = sih.infer([0, 1] * 30, (1, 2), lag_prior=prior if best == 0 else prior[::-1])
    assert found.lag == best + 1
    assert found.tied == tied


def test_a_single_candidate_has_no_posterior_to_tell() -> None:
    found = sih.infer([0, 1, 2] * 30, (2,))
    assert "posterior" not in found.verdict + repr(found)
    assert found.verdict.startswith("lag 2 (")
    assert (
        "chain" not in sih.infer([0, 1, 2] * 30, (1,)).verdict
    )  # a chain of order 1 is the lag itself


def test_independent_tokens_within_three_nats_are_no_worse() -> None:
    verdict = sih.infer([0] * 60, (1, 2)).verdict
    assert (
        verdict
        == "no lag stands out: independent tokens explain the series as well as lags 1 and 2 (within 3 nats)"
    )
    one = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1, 0])
    found = sih.infer(one, (1, 2))
    assert 0 < found.bayes_factors["independent"] < 3
    assert found.verdict.startswith(
        "no lag stands out: independent tokens explain the series as well as lags 1 and 2"
    )


def test_a_p_value_is_said_as_what_it_is() -> None:
    test = sih.permutation_test([0, 1] * 30, (1, 2), rng=0)
    assert (
        test.verdict
        == "permutation test: p = 0.005 (199 shuffles; null: order carries no information)"
    )
    one = sih.permutation_test([0, 1] * 30, (1, 2), rng=0, permutations=1)
    assert (
        one.verdict == "permutation test: p = 0.5 (1 shuffle; null: order carries no information)"
    )


def test_the_error_rate_of_the_permutation_test() -> None:
    """Of 60 series without order at most 5 % are rejected at 0.05, but for chance (above 9 of 60: below 0.2 %)."""
    rng = torch.Generator().manual_seed(5)
    law = torch.tensor([0.5, 0.3, 0.2])
    rejected = 0
    for _ in range(60):
        series = torch.multinomial(law, 40, replacement=True, generator=rng)
        series[7] = -1
        rejected += (
            sih.permutation_test(series, (1, 2), rng=rng, permutations=19, num_states=3).p_value
            <= 0.05
        )
    assert rejected <= 9
    ordered = sih.sample(sih.Task([[0.9, 0.1], [0.2, 0.8]], (1, 2), 200), 1, rng=0, lag=2).tokens[0]
    test = sih.permutation_test(ordered, (1, 2), rng=0, permutations=99)
    assert test.p_value == 0.01
    found = sih.infer(ordered, (1, 2))
    assert test.statistic == pytest.approx(found.bayes_factors["independent"], abs=1e-9)
    again = sih.permutation_test(ordered, (1, 2), rng=0, permutations=99)
    assert torch.equal(test.shuffled, again.shuffled)


@pytest.mark.parametrize(
    ("tokens", "options", "said"),
    [
        ([0.5, 1.0], {}, "a series of states"),
        ([], {}, "got none that is there"),
        ([-1, -1], {}, "got none that is there"),
        ([0, -2, 1], {}, "got -2"),
        ("ACGT", {}, "a series of states"),
        ([[[0, 1]]], {}, "a series of states"),
        ([0, 1, 5], {"num_states": 3}, "at least 6"),
        ([0, 1], {"concentration": 0.0}, "concentration"),
        ([0, 1], {"lag_prior": (0.5, 0.6)}, "lag_prior"),
    ],
)
def test_wrong_input_is_one_line(tokens: object, options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        sih.infer(tokens, (1, 2), **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_it_shows_itself() -> None:
    found = sih.infer([0, 1, 1, 0, 1, 0, 0, 1, 1, 0], (1, 2))
    assert repr(found).startswith("Inference(lag=")
    assert "\n" not in repr(found)
    left, right = draw_inference(found, ("a", "b")).axes
    assert [line.get_label() for line in left.lines] == ["lag 1", "lag 2"]
    assert np.asarray(left.lines[0].get_ydata()).tolist()[-1] == pytest.approx(
        found.posterior[0].item()
    )
    assert [label.get_text() for label in right.get_xticklabels()] == ["a", "b"]
    assert found.plot().axes[0].get_ylabel() == "posterior of the lag"
