"""KL averaged over the lag: the same mean as plain KL, by enumeration in NumPy, and a smaller variance."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import sih
from sih.base.errors import FieldError
from sih.predictors.averaged_kl import averaged_kl, exact_bayes

LENGTH = 6
LAGS = (1, 3)
P = np.array([[0.85, 0.15], [0.35, 0.65]])
PI = np.array([0.7, 0.3])  # solves PI P = PI
PRIOR = np.array([0.6, 0.4])
SEQUENCES = list(itertools.product((0, 1), repeat=LENGTH))
TOKENS = torch.tensor(SEQUENCES)


def prediction() -> np.ndarray:
    """One number in (0, 1) for each sequence of tokens so far: no predictor in particular."""
    made = np.random.default_rng(0)
    by_prefix = {
        prefix: made.uniform(0.05, 0.95) for n in range(1, LENGTH + 1) for prefix in _all(n)
    }
    first = [[by_prefix[sequence[: i + 1]] for i in range(LENGTH)] for sequence in SEQUENCES]
    return np.stack([np.array(first), 1 - np.array(first)], axis=-1)


def _all(length: int) -> Iterator[tuple[int, ...]]:
    return itertools.product((0, 1), repeat=length)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))


def paths(rate: float) -> Iterator[tuple[float, list[int]]]:
    """Every way the lag of tokens max_lag, ..., LENGTH may go, the token after the last included, with its chance."""
    steps = LENGTH - max(LAGS) + 1
    for path in itertools.product(range(len(LAGS)), repeat=steps):
        start = PRIOR[path[0]] if rate == 0 else 0.5
        moves = [1 - rate if a == b else rate for a, b in itertools.pairwise(path)]
        if chance := start * float(np.prod(moves)):
            yield chance, [LAGS[index] for index in path]


def by_enumeration(
    matrix: np.ndarray, start: np.ndarray, rate: float, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The chance of each sequence, and the expectation of plain KL at each position, over all that may be drawn."""
    first = max(LAGS)
    chances, total = np.zeros(len(SEQUENCES)), np.zeros(LENGTH)
    for chance, path in paths(rate):
        for row, tokens in enumerate(SEQUENCES):
            drawn = chance * np.prod(start[list(tokens[:first])])
            for i in range(first, LENGTH):
                drawn *= matrix[tokens[i - path[i - first]], tokens[i]]
            chances[row] += drawn
            for i in range(LENGTH):
                law = start if i + 1 < first else matrix[tokens[i + 1 - path[i + 1 - first]]]
                total[i] += drawn * divergence(law, q[row, i])
    return chances, total


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_its_expectation_is_that_of_plain_kl(rate: float) -> None:
    q = prediction()
    task = (
        sih.SwitchingTask(P, LAGS, LENGTH, rate)
        if rate
        else sih.Task(P, lags=LAGS, length=LENGTH, lag_prior=PRIOR)
    )
    chances, plain = by_enumeration(P, PI, rate, q)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    found = averaged_kl(torch.from_numpy(q), TOKENS, task).numpy()
    np.testing.assert_allclose(chances @ found, plain, rtol=1e-12)


def test_its_expectation_where_the_matrix_is_unknown() -> None:
    """The rows' first entries are uniform: both are integrated out by Gauss's quadrature."""
    q, task = prediction(), sih.FreshTask(2, LAGS, LENGTH, concentration=1.0, lag_prior=PRIOR)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    grid = list(zip((nodes + 1) / 2, weights / 2, strict=True))
    chances, plain = np.zeros(len(SEQUENCES)), np.zeros(LENGTH)
    for (a, wa), (b, wb) in itertools.product(grid, repeat=2):
        matrix = np.array([[a, 1 - a], [b, 1 - b]])
        found = by_enumeration(matrix, np.array([0.5, 0.5]), 0.0, q)
        chances, plain = chances + wa * wb * found[0], plain + wa * wb * found[1]
    averaged = averaged_kl(torch.from_numpy(q), TOKENS, task).numpy()
    np.testing.assert_allclose(chances @ averaged, plain, rtol=2e-5)


def test_it_is_the_mean_over_the_lag_given_the_tokens_so_far() -> None:
    q, task = prediction(), sih.Task(P, lags=LAGS, length=LENGTH, lag_prior=PRIOR)
    found = averaged_kl(torch.from_numpy(q), TOKENS, task).numpy()
    for row, tokens in enumerate(SEQUENCES):
        joint = PRIOR.copy()
        for i in range(LENGTH):
            if i >= max(LAGS):
                joint = joint * [P[tokens[i - k], tokens[i]] for k in LAGS]
            laws = [PI if i + 1 < max(LAGS) else P[tokens[i + 1 - k]] for k in LAGS]
            wanted = sum(
                w * divergence(law, q[row, i])
                for w, law in zip(joint / joint.sum(), laws, strict=True)
            )
            assert found[row, i] == pytest.approx(wanted, rel=1e-9, abs=1e-14)


def test_it_varies_less_and_agrees_on_samples() -> None:
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=32)
    batch = sih.sample(task, 4000, rng=11)
    law = sih.maximum_likelihood(batch.tokens, task)
    plain, averaged = (
        kl[:, 3:-1].mean(dim=1)
        for kl in (sih.kl_to_truth(law, batch, task), averaged_kl(law, batch.tokens, task))
    )
    assert averaged.var() < plain.var() / 3
    assert abs((plain - averaged).mean()) < 3 * (plain - averaged).std() / 4000**0.5


def test_with_one_lag_nothing_is_averaged() -> None:
    task = sih.Task(P, lags=(2,), length=12)
    batch = sih.sample(task, 50, rng=0)
    law = sih.stationary_law(batch.tokens, task)
    torch.testing.assert_close(
        averaged_kl(law, batch.tokens, task), sih.kl_to_truth(law, batch, task)
    )
    assert exact_bayes(batch.tokens, task).least.abs().max() < 1e-12


def test_what_is_no_distribution_is_refused() -> None:
    task = sih.Task(P, lags=LAGS, length=LENGTH)
    with pytest.raises(FieldError, match="prediction must be"):
        averaged_kl(torch.ones(2, LENGTH, 2), torch.zeros(2, LENGTH, dtype=torch.int64), task)
