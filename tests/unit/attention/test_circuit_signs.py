from __future__ import annotations

import math

import pytest
import torch

import sih
from sih.attention.circuit_signs import circuit_signs


def oracle(
    model: sih.Transformer, batch: sih.Batch, task: sih.Task
) -> tuple[float, float, float, list[list[float]]]:
    """Plain loops over attention and scores, for a model with one head in every layer."""
    time, lags, P = batch.tokens.shape[1], task.lags, task.P.tolist()
    rows = range(max(time // 3, max(lags)), time - 1)
    posterior = sih.lag_posterior(batch.tokens, task)
    last = len(model.config.heads)
    correlations, selected, believed, candidates = [], [], [], []
    mass = [[0.0] * (rows.start + 1) for _ in range(last)]
    for tokens, lag, weights in zip(
        batch.tokens.tolist(), batch.lags.tolist(), posterior, strict=True
    ):
        trace = model.trace(torch.tensor([tokens]))
        scores = trace["1.1/scores"][0].tolist()
        x, y = [], []
        for i in rows:
            s = [scores[i][i - k] for k in lags]
            p = [math.log(P[tokens[i - k]][tokens[i]]) for k in lags]
            x += [value - sum(s) / len(s) for value in s]
            y += [value - sum(p) / len(p) for value in p]
        product = sum(a * b for a, b in zip(x, y, strict=True))
        correlations.append(product / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y)))
        final = trace[f"{last}.1/attention"][0].tolist()
        candidates += [sum(final[i][i - k + 1] for k in lags) for i in rows]
        if lag > 1:
            selected += [final[i][i - lag + 1] for i in rows]
            believed += [weights[i, lags.index(lag)].item() for i in rows]
        for layer in range(last):
            attention = trace[f"{layer + 1}.1/attention"][0].tolist()
            for o in range(1, rows.start + 1):
                mass[layer][o] += sum(attention[i][i - o] for i in rows) / len(rows) / len(batch)
    mean = sum(correlations) / len(correlations)
    share = (sum(selected) / len(selected)) / (sum(believed) / len(believed))
    return mean, share, sum(candidates) / len(candidates), mass[:-1]


@pytest.mark.parametrize("heads", [(1, 1, 1), (1, 1)])
def test_signs_against_loops(heads: tuple[int, ...], rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=(1, 2, 4), length=18)
    model = sih.Transformer(4, 18, dim=8, qk_dim=4, heads=heads, dtype=torch.float64, rng=rng)
    batch = sih.sample(task, 70, rng=rng)  # more than go at once
    found = circuit_signs(model, batch, task)
    correlation, selected, candidates, mass = oracle(model, batch, task)
    assert found.correlation == pytest.approx(correlation, rel=1e-9)
    assert found.selected == pytest.approx(selected, rel=1e-9)
    assert found.candidates == pytest.approx(candidates, rel=1e-9)
    assert found.copies == pytest.approx([max(row) for row in mass], rel=1e-9)
    assert list(found.offsets) == [row.index(max(row)) for row in mass]


def test_the_construction_has_all_signs_and_a_model_without_attention_to_tokens_none(
    rng: torch.Generator,
) -> None:
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), lags=(1, 2, 3), length=40)
    batch = sih.sample(task, 64, rng=rng)
    built = circuit_signs(sih.construct(task, beta=1000.0), batch, task)
    assert built.correlation == pytest.approx(1.0)
    assert built.selected > 0.9
    assert built.candidates == pytest.approx(1.0, abs=1e-6)
    assert max(built.copies) < 0.5
    flat = circuit_signs(
        sih.DisentangledTransformer(5, 40, heads=(1, 1, 1), init="zeros"), batch, task
    )
    assert flat.correlation == 0.0
    assert flat.selected < 0.1
    assert flat.candidates == pytest.approx(3 * sum(1 / (i + 1) for i in range(13, 39)) / 26)


def test_of_several_heads_the_one_with_the_sign_counts(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=12)
    batch = sih.sample(task, 16, rng=rng)
    model = sih.DisentangledTransformer(3, 12, heads=(2, 1), init="zeros")
    model.block("1.2", "token", "token").copy_(-task.P.log().T)
    assert circuit_signs(model, batch, task).correlation == pytest.approx(-1.0)


def test_a_head_that_attends_to_its_own_token_copies_nothing(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=12)
    model = sih.DisentangledTransformer(3, 12, heads=(1, 1), init="zeros")
    model.block("1.1", "position", "position").copy_(200 * torch.eye(12))
    assert circuit_signs(model, sih.sample(task, 8, rng=rng), task).copies[0] < 1e-6
    model.block("1.1", "position", "position").copy_(
        200 * torch.eye(12).roll(-1, dims=1)
    )  # one back
    assert circuit_signs(model, sih.sample(task, 8, rng=rng), task).copies[0] == pytest.approx(1.0)


def test_without_a_lag_above_one_there_is_nothing_to_measure() -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1,), length=12)
    model = sih.Transformer(2, 12, dim=4, qk_dim=2, heads=(1, 1))
    with pytest.raises(ValueError, match=r"a true lag above 1.*got lags \(1,\), length 12"):
        circuit_signs(model, sih.sample(task, 4, rng=0), task)
