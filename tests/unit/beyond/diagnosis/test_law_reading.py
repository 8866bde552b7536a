from __future__ import annotations

import math

import pytest
import torch

import sih
from sih.beyond.diagnosis.law_reading import as_law, interval, read_law


@pytest.fixture
def batch(task: sih.Task, rng: torch.Generator) -> sih.Batch:
    return sih.sample(task, 48, rng=rng)


def test_kl_and_accuracy_against_loops(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 3), length=10)
    batch = sih.sample(task, 4, rng=rng)
    law = torch.softmax(torch.randn(4, 10, 3, generator=rng, dtype=torch.float64), -1)
    found = read_law(law, batch, task)
    P, tokens, lags = task.P.tolist(), batch.tokens.tolist(), batch.lags.tolist()

    def kl(p: list[float], q: list[float]) -> float:
        return sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))

    means, right = [], []
    for b in range(4):
        rows = [(P[tokens[b][i - lags[b] + 1]], law[b, i].tolist(), i) for i in range(3, 9)]
        means.append(sum(kl(p, q) for p, q, _ in rows) / len(rows))
        telling = [(q, i) for _, q, i in rows if tokens[b][i] != tokens[b][i - 2]]
        nearest = [
            1 if kl(P[tokens[b][i]], q) <= kl(P[tokens[b][i - 2]], q) else 3 for q, i in telling
        ]
        right.append(sum(lag == lags[b] for lag in nearest) / len(nearest))
    assert found.kl["model"].mean == pytest.approx(sum(means) / 4)
    error = math.sqrt(sum((x - sum(means) / 4) ** 2 for x in means) / 3 / 4)
    assert found.kl["model"].high - found.kl["model"].low == pytest.approx(4 * error)
    assert found.lag_accuracy["model"].mean == pytest.approx(sum(right) / 4)
    assert len(found.by_position["model"]) == 9


def test_words_follow_the_predictors(task: sih.Task, batch: sih.Batch) -> None:
    tokens = batch.tokens
    bma, ml, flat = (
        sih.bma(tokens, task),
        sih.maximum_likelihood(tokens, task),
        sih.stationary_law(tokens, task),
    )
    said = {
        "Predicts like BMA (within 0.001 nats)": bma,
        "Predicts better than maximum likelihood, not as well as BMA": (bma + ml) / 2,
        "Predicts about as well as maximum likelihood": ml,
        "Predicts worse than maximum likelihood, better than the stationary distribution": (
            bma + flat
        )
        / 2,
        "Predicts no better than the stationary distribution": flat,
    }
    for words, law in said.items():
        found = read_law(law, batch, task)
        assert found.words == words
        assert read_law(law, batch, task, lags_known=False).words == words
    assert found.kl["model"] == found.kl["stationary"]
    assert read_law(bma, batch, task, lags_known=False).kl["model"].mean == 0


def test_logits_are_recognised_and_what_is_neither_is_refused(
    task: sih.Task, batch: sih.Batch
) -> None:
    law = sih.bma(batch.tokens, task)
    assert as_law(law.float(), batch, task)[1] is False
    for logits in (law.log(), law.log() - 5, law.log().half() + 2):
        found, were_logits = as_law(logits, batch, task)
        assert were_logits
        torch.testing.assert_close(
            found, law, atol=1e-2 if logits.dtype == torch.float16 else 1e-9, rtol=0
        )
    masked = law.log().clone()
    masked[0, 5, 0] = -torch.inf
    masked[1, :, 2] = -torch.inf  # a state ruled out throughout
    assert not torch.isnan(as_law(masked, batch, task)[0]).any()
    nothing_left = law.log().clone()
    nothing_left[0, 5] = -torch.inf
    for wrong, what in (
        (law.log() + 20, "must sum to 1"),
        (2 * law, "must sum to 1"),
        (law * torch.nan, "finite numbers"),
        (torch.full_like(law, -torch.inf), "finite numbers"),
        (nothing_left, "finite numbers"),
        (law[:, :-1], "shape"),
    ):
        with pytest.raises(ValueError, match=what):
            as_law(wrong, batch, task)


def test_a_law_that_rules_out_what_happens_is_infinitely_far_and_never_nan(
    task: sih.Task, batch: sih.Batch
) -> None:
    law = torch.zeros_like(sih.bma(batch.tokens, task))
    law[..., 0] = 1
    found = read_law(law, batch, task)
    assert found.kl["model"] == (math.inf, math.inf, math.inf)
    assert found.words == "Predicts no better than the stationary distribution"
    assert interval(torch.tensor([1.0, math.inf])).low == math.inf
    assert not any(
        math.isnan(x)
        for row in (found.kl, found.to_bma, found.lag_accuracy)
        for y in row.values()
        for x in y
    )


def test_lags_that_always_agree_have_no_accuracy() -> None:
    task = sih.Task([[0.5, 0.5], [0.5, 0.5]], lags=(1, 2), length=12)
    batch = sih.sample(task, 4, rng=torch.Generator().manual_seed(0))
    assert read_law(sih.bma(batch.tokens, task), batch, task).lag_accuracy == {}
