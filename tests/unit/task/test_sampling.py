from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import tasks

import sih
import sih.task.sampling
from sih.task import Task

P2 = [[0.9, 0.1], [0.5, 0.5]]


@given(tasks(zeros=True), st.integers(0, 2**32 - 1))
def test_samples_keep_to_the_possible(task: Task, seed: int) -> None:
    batch = sih.sample(task, 20, rng=torch.Generator().manual_seed(seed))
    assert batch.tokens.shape == (20, task.length)
    assert batch.tokens.dtype == batch.lags.dtype == torch.int64
    for row, lag in zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True):
        assert lag in task.lags
        assert all(task.P[row[i - lag], row[i]] > 0 for i in range(task.max_lag, task.length))


@given(tasks(), st.integers(0, 2**32 - 1))
def test_same_generator_state_same_tokens(task: Task, seed: int) -> None:
    first, second = (sih.sample(task, 5, rng=torch.Generator().manual_seed(seed)) for _ in range(2))
    assert torch.equal(first.tokens, second.tokens)
    assert torch.equal(first.lags, second.lags)


def test_golden_tokens() -> None:
    """The stream of a seed is part of the interface: a change here changes everybody's data."""
    batch = sih.sample(Task(P2, (1, 2), 12), 2, rng=torch.Generator().manual_seed(7))
    assert batch.lags.tolist() == [1, 1]
    assert batch.tokens.tolist() == [
        [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
        [0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0],
    ]


@given(tasks(), st.integers(0, 2**32 - 1))
def test_every_way_of_drawing_draws_the_same(task: Task, seed: int) -> None:
    by_table = sih.sample(task, 50, rng=torch.Generator().manual_seed(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sih.task.sampling, "TABLE_LIMIT", 0)
        by_search = sih.sample(task, 50, rng=torch.Generator().manual_seed(seed))
        patch.setattr(
            sih.task.sampling, "CHUNK", 7
        )  # and the numbers made ahead, few or many, are the same numbers
        in_chunks = sih.sample(task, 50, rng=torch.Generator().manual_seed(seed))
        patch.setattr(
            sih.task.sampling, "_numpy_if_cpu", lambda tensor: tensor
        )  # as on a GPU: torch all the way
        search_by_torch = sih.sample(task, 50, rng=torch.Generator().manual_seed(seed))
        patch.setattr(sih.task.sampling, "TABLE_LIMIT", 10**9)
        table_by_torch = sih.sample(task, 50, rng=torch.Generator().manual_seed(seed))
    for other in (by_search, in_chunks, search_by_torch, table_by_torch):
        assert torch.equal(by_table.tokens, other.tokens)


def test_sampler_inverts_the_distribution_function_of_the_right_row(rng: torch.Generator) -> None:
    """Algorithm 1 by a plain loop on the same uniform numbers."""
    task = Task(sih.random_sparse(6, rng=rng, nonzero=3), (2, 3, 7), 40, (0.2, 0.5, 0.3))
    batch = sih.sample(task, 30, rng=torch.Generator().manual_seed(3))
    again = torch.Generator().manual_seed(3)

    def invert(law: list[float], u: float) -> int:
        total = 0.0
        for state, p in enumerate(law):
            total += p
            if u < total:
                return state
        return max(state for state, p in enumerate(law) if p > 0)

    def uniforms(*shape: int) -> list[list[float]]:
        return torch.rand(shape, generator=again, dtype=torch.float64).tolist()

    lags = [task.lags[invert([0.2, 0.5, 0.3], u)] for u in uniforms(1, 30)[0]]
    assert batch.lags.tolist() == lags
    for lag in task.lags:
        members = [b for b in range(30) if lags[b] == lag]
        numbers = uniforms(7, len(members)) + uniforms(33, len(members))
        for column, b in enumerate(members):
            row: list[int] = []
            for i in range(40):
                law = task.stationary if i < 7 else task.P[row[i - lag]]
                row.append(invert(law.tolist(), numbers[i][column]))
            assert batch.tokens[b].tolist() == row


# Statistical tests, each on a fixed seed. A z-score is a sum of N >= 10,000 independent terms, normal to good
# accuracy; |z| < 5 for each of at most 100 of them fails by chance for less than 1 seed in 10,000.
Z = 5.0


def _z(count: float, total: float, probability: float) -> float:
    return abs(count - total * probability) / math.sqrt(total * probability * (1 - probability))


@pytest.fixture(scope="module")
def big() -> tuple[Task, sih.Batch]:
    rng = torch.Generator().manual_seed(11)
    task = Task(sih.random_transition_matrix(4, rng=rng), (1, 3, 4), 30, (0.5, 0.2, 0.3))
    return task, sih.sample(task, 40_000, rng=rng)


def test_lags_follow_the_prior(big: tuple[Task, sih.Batch]) -> None:
    task, batch = big
    for lag, p in zip(task.lags, task.lag_prior.tolist(), strict=True):
        assert _z(int((batch.lags == lag).sum()), 40_000, p) < Z


def test_every_position_has_the_stationary_law_and_the_start_is_independent(
    big: tuple[Task, sih.Batch],
) -> None:
    task, batch = big
    for i in range(task.length):
        for s, p in enumerate(task.stationary.tolist()):
            assert _z(int((batch.tokens[:, i] == s).sum()), 40_000, p) < Z
    pi = task.stationary.tolist()
    for i, j in ((0, 1), (0, 3), (2, 3)):  # the first max_lag = 4 tokens, pairwise
        for a in range(4):
            for b in range(4):
                both = (batch.tokens[:, i] == a) & (batch.tokens[:, j] == b)
                assert _z(int(both.sum()), 40_000, pi[a] * pi[b]) < Z


@pytest.mark.parametrize("lag", [1, 3, 4])
def test_transitions_happen_at_the_true_lag(big: tuple[Task, sih.Batch], lag: int) -> None:
    task, batch = big
    tokens = batch.tokens[batch.lags == lag]
    for i in (4, 5, 17, 29):
        for a in range(4):
            from_a = tokens[:, i - lag] == a
            for b in range(4):
                moved = from_a & (tokens[:, i] == b)
                assert _z(int(moved.sum()), int(from_a.sum()), task.P[a, b].item()) < Z


def test_interleaved_chains_are_independent(big: tuple[Task, sih.Batch]) -> None:
    task, batch = big
    tokens = batch.tokens[batch.lags == 3]
    pi = task.stationary.tolist()
    for i, j in ((20, 21), (20, 22), (27, 29)):  # distance not a multiple of 3: different chains
        for a in range(4):
            for b in range(4):
                both = (tokens[:, i] == a) & (tokens[:, j] == b)
                assert _z(int(both.sum()), len(tokens), pi[a] * pi[b]) < Z


def test_the_statistical_tests_can_fail(big: tuple[Task, sih.Batch]) -> None:
    task, batch = big
    tokens = batch.tokens[batch.lags == 3]
    worst = 0.0
    for a in range(4):
        from_a = tokens[:, 19] == a  # lag 1, on sequences of lag 3
        worst = max(
            worst,
            *(
                _z(
                    int((from_a & (tokens[:, 20] == b)).sum()),
                    int(from_a.sum()),
                    task.P[a, b].item(),
                )
                for b in range(4)
            ),
        )
    assert worst > 3 * Z


def test_many_states_long_and_wide(rng: torch.Generator) -> None:
    many = Task(sih.random_transition_matrix(1000, rng=rng), (1, 2), 16)
    batch = sih.sample(many, 64, rng=rng)
    assert (batch.tokens >= 0).all()
    assert (batch.tokens < 1000).all()
    assert sih.sample(Task(P2, (1, 2, 3), 8), 100_000, rng=rng).tokens.shape == (100_000, 8)


@pytest.mark.slow
def test_a_million_tokens_in_one_sequence(rng: torch.Generator) -> None:
    task = Task(P2, (1, 2, 3), 1_000_000)
    tokens = sih.sample(task, 2, rng=rng).tokens
    share = (tokens == 0).to(torch.float64).mean().item()
    assert share == pytest.approx(5 / 6, abs=0.01)


def test_size_is_checked(task: Task, rng: torch.Generator) -> None:
    with pytest.raises(ValueError, match="at least 1; got 0"):
        sih.sample(task, 0, rng=rng)


def test_a_seed_is_a_generator_and_a_lag_is_every_sequences(
    task: Task, rng: torch.Generator
) -> None:
    rng.manual_seed(7)
    assert torch.equal(sih.sample(task, 3, rng=7).tokens, sih.sample(task, 3, rng=rng).tokens)
    with pytest.raises(ValueError, match=r"lag is one of the task's, 1, 2, 3; got 4"):
        sih.sample(task, 3, rng=7, lag=4)
    with pytest.raises(ValueError, match="a seed, a whole number from 0 on; got -1"):
        sih.sample(task, 3, rng=-1)
    pairs = {lag: sih.sample(task, 400, rng=7, lag=lag) for lag in task.lags}
    for lag, batch in pairs.items():
        assert (batch.lags == lag).all()
        assert torch.equal(batch.tokens[:, :3], pairs[1].tokens[:, :3])
        # The same numbers draw the rest: equal parents have equal children, in both sequences of a pair.
        alike = batch.tokens[:, 3 - lag] == pairs[1].tokens[:, 2]
        assert alike.any()
        assert torch.equal(batch.tokens[alike, 3], pairs[1].tokens[alike, 3])
        counts = torch.zeros(5, 5).double()
        parents, children = batch.tokens[:, 3 - lag : -lag].flatten(), batch.tokens[:, 3:].flatten()
        counts.index_put_((parents, children), torch.ones(len(parents)).double(), accumulate=True)
        expected = counts.sum(-1, keepdim=True) * task.P
        chi2 = ((counts - expected) ** 2 / expected).sum()
        assert chi2 < 55  # 20 degrees of freedom: exceeded by chance with probability 4e-5


@pytest.mark.parametrize("size", [1, 1000])
def test_the_memory_that_is_asked_for_holds_what_is_made(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens, uniform numbers, and the parents under each lag, 8 bytes each; not a hundred times as much."""
    task, asked = Task(P2, (1, 2, 5), 64), list[int]()
    monkeypatch.setattr(sih.task.sampling, "check_memory", lambda needed, _: asked.append(needed))
    sih.sample(task, size, rng=0)
    least = 8 * 64 * (2 * size + 3)
    assert least <= asked[0] < 100 * least
