"""Hypothesis strategies: random tasks and sequences for them."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

import sih


@st.composite
def tasks(
    draw: st.DrawFn,
    max_states: int = 5,
    max_lag: int = 6,
    max_length: int = 24,
    zeros: bool = False,
) -> sih.Task:
    """A task with a random matrix of any kind; with `zeros`, one that has impossible transitions."""
    num_states = draw(st.integers(2, max_states))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    if zeros:
        P = sih.random_sparse(num_states, rng=rng, nonzero=draw(st.integers(1, num_states)))
    else:
        kinds = (
            sih.random_transition_matrix,
            sih.random_doubly_stochastic,
            sih.random_near_periodic,
        )
        P = draw(st.sampled_from(kinds))(num_states, rng=rng)
    lags = sorted(draw(st.sets(st.integers(1, max_lag), min_size=1, max_size=4)))
    length = draw(st.integers(lags[-1] + 1, 24))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(lags), max_size=len(lags)))
    prior = [w / sum(weights) for w in weights]
    return sih.Task(P, lags, length, prior)


@st.composite
def tasks_with_tokens(draw: st.DrawFn, zeros: bool = False) -> tuple[sih.Task, sih.Batch]:
    """A task, and a batch of sequences it can produce."""
    task = draw(tasks(zeros=zeros))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    return task, sih.sample(task, draw(st.integers(1, 3)), rng=rng)


lag_sets = st.sets(st.integers(1, 16), min_size=1, max_size=7).map(lambda s: tuple(sorted(s)))


def parent_tables(most: int, hypotheses: int = 3) -> st.SearchStrategy[list[list[int]]]:
    """Tables in which a token has a parent under all hypotheses or none."""

    @st.composite
    def draw_table(draw: st.DrawFn) -> list[list[int]]:
        count, length = draw(st.integers(1, hypotheses)), draw(st.integers(2, most))
        columns = [[-1] * count]
        for n in range(1, length):
            some = draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count))
            columns.append(some if draw(st.integers(0, 5)) else [-1] * count)
        return [list(row) for row in zip(*columns, strict=True)]

    return draw_table()
