"""A matrix for each sequence: how it is drawn, who knows it, and the bigrams of Edelman et al. as an instance."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles_family as oracles
from torch import Tensor
from torch.utils.data import DataLoader

import sih
import sih.task.sampling
from sih.predictors.predictors import PREDICTORS
from sih.task import CausalTask, MatrixTask

TASK = sih.FreshTask(
    num_states=3, lags=(1, 2, 4), length=20, concentration=0.8, lag_prior=[0.5, 0.2, 0.3]
)


@pytest.fixture(scope="module")
def big() -> sih.Batch:
    return sih.sample(TASK, 20_000, rng=5)


def test_it_is_a_task_without_a_matrix() -> None:
    assert isinstance(TASK, CausalTask)
    assert not isinstance(TASK, MatrixTask)
    assert sih.FreshTask(**TASK.to_dict()) == TASK
    assert TASK.with_length(9).same_chains(TASK)
    assert TASK.with_length(9) != TASK
    assert hash(sih.FreshTask(**TASK.to_dict())) == hash(TASK)


# Each z-score is of 20,000 terms or more on a fixed seed; |z| < 5 fails by chance for less than 1 seed in 10,000.


def test_matrices_have_dirichlet_rows(big: sih.Batch) -> None:
    """Each entry is Beta(a, (S - 1) a): its mean, its variance, and the correlation -1 / (S - 1) within a row."""
    assert big.P is not None
    assert big.P.shape == (20_000, 3, 3)
    assert (big.P.sum(dim=-1) - 1).abs().max() < 1e-14
    deviation = big.P - 1 / 3
    variance = (1 / 3) * (2 / 3) / (3 * 0.8 + 1)
    assert (deviation.mean(dim=0).abs() * math.sqrt(20_000 / variance) < 5).all()
    for a in range(3):
        products = deviation[:, a, 0] * deviation[:, a, 1]
        assert abs(products.mean() + variance / 2) < 5 * products.std() / math.sqrt(20_000)
        squares = deviation[:, a, 0] ** 2
        assert abs(squares.mean() - variance) < 5 * squares.std() / math.sqrt(20_000)
        between = deviation[:, a, 0] * deviation[:, (a + 1) % 3, 0]  # rows are independent
        assert abs(between.mean()) < 5 * between.std() / math.sqrt(20_000)


def test_tokens_follow_their_own_sequence_s_matrix(big: sih.Batch) -> None:
    assert big.P is not None
    assert {lag: round(float((big.lags == lag).double().mean()), 1) for lag in TASK.lags} == {
        1: 0.5,
        2: 0.2,
        4: 0.3,
    }
    for s in range(3):
        starts = (big.tokens[:, :4] == s).double()  # uniform, and independent of the matrix
        assert abs(starts.mean() - 1 / 3) < 5 * math.sqrt(2 / 9 / 80_000)
        assert abs((starts[:, 0] * (big.P[:, 0, s] - 1 / 3)).mean()) < 5 * math.sqrt(
            2 / 27 / 3.4 / 20_000
        )
    rows = torch.arange(20_000)
    for i in (4, 7, 19):
        parents = big.tokens[rows, i - big.lags]
        p = big.P[rows, parents]
        for s in range(3):
            surprise = (big.tokens[:, i] == s).double() - p[:, s]
            assert abs(surprise.sum()) < 5 * (p[:, s] * (1 - p[:, s])).sum().sqrt()
            against = surprise * (p[:, s] - 1 / 3)  # and more often where the matrix says so
            assert abs(against.sum()) < 5 * against.square().sum().sqrt()
        wrong = big.P[rows, big.tokens[rows, i - 3]]  # no sequence has lag 3
        off = ((big.tokens[:, i] == 0).double() - wrong[:, 0]) * (wrong[:, 0] - 1 / 3)
        assert abs(off.sum()) > 15 * off.square().sum().sqrt()


def test_every_way_of_drawing_draws_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    by_search = sih.sample(TASK, 60, rng=3)
    monkeypatch.setattr(sih.task.sampling, "TABLE_LIMIT", 10**9)
    by_table = sih.sample(TASK, 60, rng=3)
    monkeypatch.setattr(sih.task.sampling, "_numpy_if_cpu", lambda tensor: tensor)  # as on a GPU
    monkeypatch.setattr(sih.task.sampling, "CHUNK", 7)
    by_torch = sih.sample(TASK, 60, rng=3)
    assert torch.equal(by_search.tokens, by_table.tokens)
    assert torch.equal(by_search.tokens, by_torch.tokens)


def test_golden_tokens() -> None:
    """The stream of a seed is part of the interface: a change here changes everybody's data."""
    batch = sih.sample(sih.FreshTask(2, (1, 2), 12), 2, rng=7)
    assert batch.P is not None
    assert batch.lags.tolist() == [1, 1]
    assert batch.tokens.tolist() == [
        [0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0],
        [1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ]
    assert batch.P[0, 0].tolist() == pytest.approx(
        [0.4860771868598062, 0.5139228131401937], rel=1e-9
    )


def test_counterfactual_pairs_share_matrix_and_start() -> None:
    one, two = (sih.sample(TASK, 50, rng=1, lag=lag) for lag in (1, 4))
    assert one.P is not None
    assert two.P is not None
    assert torch.equal(one.P, two.P)
    assert torch.equal(one.tokens[:, :4], two.tokens[:, :4])
    assert (one.lags == 1).all()
    assert (two.lags == 4).all()


def test_a_batch_carries_its_matrices() -> None:
    batch = sih.sample(TASK, 5, rng=0)
    assert batch.P is not None
    for index, (tokens, lag, P) in enumerate(batch):
        assert torch.equal(tokens, batch.tokens[index])
        assert torch.equal(P, batch[index].P)
        assert lag == batch[index].lags
    for which in (slice(1, 3), [4, 0], batch.lags == batch.lags[0]):
        part = batch[which].to("cpu")
        assert part.P is not None
        assert torch.equal(part.P, batch.P[which])
    assert sih.sample(TASK, 1, rng=0).P is not None
    loaded = next(iter(DataLoader(list(batch), batch_size=5)))  # type: ignore[arg-type]
    assert torch.equal(loaded.P, batch.P)
    (drawn,) = (found for _, found in zip(range(1), sih.FreshBatches(TASK, 3), strict=False))
    assert drawn.P is not None


def test_the_truth_knows_the_matrix() -> None:
    batch = sih.sample(TASK, 30, rng=2)
    assert batch.P is not None
    law = sih.truth(batch, TASK)
    for b, (row, lag) in enumerate(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True)):
        for i in range(TASK.length):
            expected = (
                batch.P[b, row[i + 1 - lag]]
                if i + 1 >= 4
                else torch.full((3,), 1 / 3, dtype=torch.float64)
            )
            assert torch.equal(law[b, i], expected)
    assert sih.kl_to_truth(law, batch, TASK).abs().max() == 0
    assert sih.mean_kl(sih.kl_to_truth(sih.bma(batch.tokens, TASK), batch, TASK), TASK).shape == (
        30,
    )


def test_bayes_is_the_best_on_average_and_finds_the_lag(big: sih.Batch) -> None:
    """Of all predictors exact Bayes has the least mean KL: here by more than 5 standard errors of the difference."""
    batch = big[:4000]
    found = {
        name: sih.mean_kl(
            sih.kl_to_truth(PREDICTORS[name].law(batch.tokens, TASK), batch, TASK), TASK
        )
        for name in ("bma", "ml", "plug-in", "selective", "ngram", "stationary")
    }
    for name in found.keys() - {"bma"}:
        worse = found[name] - found["bma"]
        assert worse.mean() > 5 * worse.std() / math.sqrt(4000), name
    accuracy = sih.lag_accuracy(sih.lag_posterior(batch.tokens, TASK), batch, TASK)
    assert accuracy[3] == (batch.lags == 1).double().mean()  # the prior's favourite
    assert accuracy[-1] > accuracy[10] > accuracy[5] > 0.45


LAWS: dict[str, Callable[[Tensor, CausalTask], Tensor]] = {
    name: one.law for name, one in PREDICTORS.items()
}


@pytest.mark.parametrize("name", LAWS)
@settings(max_examples=5)
@given(st.data())
def test_what_no_predictor_depends_on(name: str, data: st.DataObject) -> None:
    """Names of states, later tokens, how many follow: and laws sum to 1, uniform at first."""
    rng = torch.Generator().manual_seed(data.draw(st.integers(0, 2**32 - 1)))
    batch = sih.sample(TASK, 2, rng=rng)
    law = LAWS[name](batch.tokens, TASK)
    assert (law.sum(dim=-1) - 1).abs().max() < 1e-12
    assert (law[:, :3] - 1 / 3).abs().max() == 0
    new = torch.tensor(data.draw(st.permutations(range(3))))
    assert (law - LAWS[name](new[batch.tokens], TASK)[..., new]).abs().max() < 1e-12
    end = data.draw(st.integers(0, TASK.length))
    assert (law[:, :end] - LAWS[name](batch.tokens[:, :end], TASK)).abs().sum() < 1e-11
    other = torch.cat([batch.tokens[:, :end], batch.tokens[:, end:].flip(1)], dim=1)
    assert (law[:, :end] - LAWS[name](other, TASK)[:, :end]).abs().sum() < 1e-11


def test_edelman_et_al_s_in_context_bigrams() -> None:
    """With one lag, 1, Bayes is their posterior predictive law, by their definition."""
    task = sih.FreshTask(num_states=3, lags=(1,), length=30, concentration=0.5)
    tokens = sih.sample(task, 5, rng=0).tokens
    law = sih.bma(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        for i in range(30):
            expected = torch.tensor(
                oracles.in_context_bigram(row[: i + 1], 3, 0.5), dtype=torch.float64
            )
            assert (law[b, i] - expected).abs().max() < 1e-14
    assert torch.equal(law, sih.maximum_likelihood(tokens, task))
    assert (law - sih.plug_in(tokens, task, pseudo_count=0.5)).abs().max() == 0
    assert (
        law - sih.ngram(tokens, task, pseudo_count=1.5)
    ).abs().max() < 1e-14  # S alpha imagined ones in all


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sih.FreshTask(1, (1, 2), 8), "at least 2 states; got num_states=1"),
        (
            lambda: sih.FreshTask(2, (1, 2), 2),
            "length must be a whole number above the largest lag, 2; got 2",
        ),
        (lambda: sih.FreshTask(2, (2, 1), 8), "lags must be distinct, positive and increasing"),
        (
            lambda: sih.FreshTask(2, (1, 2), 8, 0.0),
            "concentration is a positive number, e.g. 1.0; got 0.0",
        ),
        (
            lambda: sih.FreshTask(2, (1, 2), 8, 1.0, [1.0]),
            "lag_prior is one positive probability for each of the 2",
        ),
        (
            lambda: sih.truth(sih.Batch(torch.zeros(2, 8).long(), torch.ones(2).long()), TASK),
            "batch.P has the matrix",
        ),
        (
            lambda: sih.plug_in(sih.sample(TASK, 2, rng=0).tokens, TASK, pseudo_count=0.0),
            "pseudo_count is a positive",
        ),
        (
            lambda: sih.bma(torch.full((2, 8), 3), TASK),
            "tokens are states 0 to 2; sequence 0 has 3 at position 0",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
