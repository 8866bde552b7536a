"""Any parents: checked tables, random ones, and every predictor against enumeration."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import trees
from support.strategies import tasks_with_tokens
from support.trees import TreeTask

import sih
from sih.base.errors import FieldError
from sih.task import MatrixTask

P2 = [[0.9, 0.1], [0.5, 0.5]]


@given(st.data())
def test_every_predictor_is_that_of_enumeration(data: st.DataObject) -> None:
    length, count = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 3))
    table = [[data.draw(st.integers(-1, i - 1)) for i in range(length + 1)] for _ in range(count)]
    rng = torch.Generator().manual_seed(data.draw(st.integers(0, 2**32 - 1)))
    P = sih.random_transition_matrix(3, rng=rng)
    prior = torch.softmax(torch.randn(count, generator=rng).double(), dim=0)
    task = sih.ParentsTask(P, table, length, prior)
    oracle = TreeTask(P, tuple(map(tuple, table)), task.prior)
    batch = sih.sample(task, 3, rng=rng)
    laws = sih.bma(batch.tokens, task), sih.maximum_likelihood(batch.tokens, task)
    selective = sih.selective(batch.tokens, task, beta=7.0)
    posterior, truth = (
        sih.lag_posterior(batch.tokens, task),
        sih.known_lag(batch.tokens, batch.lags, task),
    )
    pi, rows = task.stationary.tolist(), P.tolist()
    for b, tokens in enumerate(batch.tokens.tolist()):
        for i in range(length):
            seen = tokens[: i + 1]
            assert laws[0][b, i].tolist() == pytest.approx(trees.bma(seen, oracle), abs=1e-13)
            likelihoods = [trees.likelihood(seen, rows, pi, tuple(row)) for row in table]
            joint = [
                float(p) * float(each) for p, each in zip(task.prior, likelihoods, strict=True)
            ]
            assert posterior[b, i].tolist() == pytest.approx(
                [each / sum(joint) for each in joint], abs=1e-13
            )
            each_law = [rows[tokens[row[i + 1]]] if row[i + 1] >= 0 else pi for row in table]
            assert truth[b, i].tolist() == pytest.approx(each_law[int(batch.lags[b])], abs=1e-15)
            best = max(range(count), key=lambda h: (round(math.log(likelihoods[h]), 9), -h))
            assert laws[1][b, i].tolist() == pytest.approx(each_law[best], abs=1e-15)
            evidence, counted = [0.0] * count, 0
            for n in range(i + 1):
                if any(row[n] >= 0 for row in table):
                    p = [
                        rows[tokens[row[n]]][tokens[n]] if row[n] >= 0 else pi[tokens[n]]
                        for row in table
                    ]
                    evidence, counted = (
                        [e + q / sum(p) for e, q in zip(evidence, p, strict=True)],
                        counted + 1,
                    )
            weights = [math.exp(7 * e / max(counted, 1)) for e in evidence]
            mixed = [
                sum(w * law[s] for w, law in zip(weights, each_law, strict=True)) / sum(weights)
                for s in range(3)
            ]
            if all(row[i + 1] < 0 for row in table):
                mixed = pi
            assert selective[b, i].tolist() == pytest.approx(mixed, abs=1e-13)
    assert sih.kl_to_truth(truth, batch, task).abs().max() == 0


@given(tasks_with_tokens(zeros=True))
def test_lags_as_a_table_are_the_paper_s_task(drawn: tuple[sih.Task, sih.Batch]) -> None:
    task, batch = drawn
    same = sih.ParentsTask(task.P, task.parents(task.length + 1), task.length, task.lag_prior)
    for predict in (sih.bma, sih.maximum_likelihood, sih.selective):
        assert (predict(batch.tokens, task) - predict(batch.tokens, same)).abs().max() < 1e-13
    drawn_again = [sih.sample(each, 5, rng=3) for each in (task, same)]
    assert torch.equal(drawn_again[0].tokens, drawn_again[1].tokens)
    without = sih.ParentsTask(
        task.P, task.parents(task.length), prior=task.lag_prior
    )  # says nothing of the next token
    assert without.length == task.length
    law = sih.bma(batch.tokens, without)
    assert torch.equal(law[:, :-1], sih.bma(batch.tokens, same)[:, :-1])
    assert torch.equal(law[:, -1], without.stationary.expand(len(batch), -1))


def test_a_task_is_what_it_was_given() -> None:
    task = sih.ParentsTask(P2, [[-1, 0, 1, 1, 0], [-1, -1, 0, 2, 1]], length=3, prior=[0.25, 0.75])
    assert isinstance(task, MatrixTask)
    assert (task.length, task.num_states, task.hypotheses) == (3, 2, (0, 1))
    assert task.parents(4).tolist() == [[-1, 0, 1, 1], [-1, -1, 0, 2]]
    assert task.prior.tolist() == [0.25, 0.75]
    assert sih.ParentsTask(**task.to_dict()).to_dict() == task.to_dict()
    with pytest.raises(
        FieldError, match="tokens must be at most 3 long, the length of the task; got 4"
    ):
        sih.bma(torch.zeros(1, 4, dtype=torch.int64), task)
    with pytest.raises(AttributeError):
        task.length = 2  # type: ignore[misc]  # frozen


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        ({"parents": [[-1, 1]]}, "parents", "hypothesis 0 gives token 1 the parent 1$"),
        ({"parents": [[-1, 0], [0, 0]]}, "parents", "hypothesis 1 gives token 0 the parent 0$"),
        (
            {"parents": [[-1, -2]]},
            "parents",
            "or is -1 for none; hypothesis 0 gives token 1 the parent -2",
        ),
        ({"parents": [[-1, 0], [-1]]}, "parents", r"e\.g\. \[\[-1, 0, 1\], \[-1, 0, 0\]\]; got"),
        ({"parents": torch.zeros(2, 3)}, "parents", "a row for each hypothesis"),
        ({"parents": [[]]}, "parents", "a row for each hypothesis"),
        ({"length": 5}, "length", "the table has 3 columns"),
        ({"length": 0}, "length", "at least 1"),
        ({"prior": [0.5, 0.6]}, "prior", "each of the 2 hypotheses, summing to 1"),
    ],
)
def test_a_task_checks_itself(values: dict[str, object], field: str, message: str) -> None:
    with pytest.raises(FieldError, match=message) as caught:
        sih.ParentsTask(**{"P": P2, "parents": [[-1, 0, 1], [-1, 0, 0]], **values})  # type: ignore[arg-type]
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_random_parents_are_uniform_among_those_allowed() -> None:
    """Every parent that may be is drawn as often as any other: |z| < 5, on a fixed seed."""
    for distinct, reach in ((True, None), (True, 4), (False, None), (False, 2)):
        rng = torch.Generator().manual_seed(1)
        drawn = torch.stack(
            [sih.random_parents(3, 6, rng=rng, distinct=distinct, reach=reach) for _ in range(3000)]
        )
        assert drawn.shape == (3000, 3, 7)
        first = 3 if distinct else 1
        assert (drawn[:, :, :first] == -1).all()
        for child in range(first, 7):
            allowed = list(range(max(0, child - (reach or 6)), child))
            parents = drawn[:, :, child]
            if distinct:
                assert (parents.sort(dim=1).values.diff(dim=1) > 0).all()
            for h in range(3):
                for parent in range(-1, child):
                    p = 1 / len(allowed) if parent in allowed else 0.0
                    count = int((parents[:, h] == parent).sum())
                    assert abs(count - 3000 * p) <= 5 * math.sqrt(3000 * p * (1 - p))


def test_random_parents_come_from_the_seed_and_check_themselves() -> None:
    assert torch.equal(
        sih.random_parents(2, 9, rng=4),
        sih.random_parents(2, 9, rng=torch.Generator().manual_seed(4)),
    )
    assert not torch.equal(sih.random_parents(2, 9, rng=4), sih.random_parents(2, 9, rng=5))
    with pytest.raises(
        FieldError, match="3 hypotheses need as many parents to choose from; reach 2"
    ):
        sih.random_parents(3, 9, rng=0, reach=2)
    with pytest.raises(FieldError, match="hypotheses must be a whole number"):
        sih.random_parents(0, 9, rng=0)


def test_as_many_distinct_parents_as_there_are_tokens_in_reach() -> None:
    table = sih.random_parents(3, 9, rng=0, reach=3)
    assert [sorted(column) for column in table.T.tolist()[3:]] == [
        [n - 3, n - 2, n - 1] for n in range(3, 10)
    ]
    with pytest.raises(FieldError):
        sih.random_parents(4, 9, rng=0, reach=3)
