from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.small_runs import SHORT, make

import sih
from sih.base.errors import FieldError
from sih.training.runs.evaluate import (
    LEAST,
    MOST,
    candidates_alike,
    fresh_sequences,
    measure,
    measure_on,
)
from sih.training.runs.evaluation import EVALUATION, MEASURED, RunEvaluation
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED, RunStore

ELSEWHERE = {
    "paper-1.2.3": (1.0679, 0.0068),
    "standard-1.2.3": (0.7957, 0.0042),
    "paper-1.2.3-length64": (1.7818, 0.0104),
    "paper-1.2-length32": (1.3557, 0.0113),
    "paper-3.5.7-length32": (1.0470, 0.0075),
    "standard-1.2.3-1.1": (7.846, 0.082),
    "disentangled-1.3.4": (0.936, 0.005),
    "standard-1.2.3.4.5-1.2.1": (1.410, 0.014),
}
"""KL/ML and its standard error by a program in NumPy alone, on 4,096 or 8,192 other sequences."""


def in_numpy(run: Run, sequences: int) -> tuple[np.ndarray, ...]:
    """KL of the model, of ML, of BMA and of the lags weighed alike at every position, averaged over the posterior."""
    task = run.task
    P, lags, first = task.P.numpy(), task.lags, task.max_lag
    tokens = next(fresh_sequences(task))[:sequences]
    with torch.no_grad():
        q = run.model.predict(tokens).double().numpy()
    found = np.zeros((4, *tokens.shape))
    for row, s in enumerate(tokens.tolist()):
        log_likelihood = np.zeros(len(lags))
        for i in range(first - 1, len(s)):
            if i >= first:
                log_likelihood += [math.log(P[s[i - k], s[i]]) for k in lags]
            posterior = np.exp(log_likelihood - log_likelihood.max())
            posterior /= posterior.sum()
            laws = np.array([P[s[i + 1 - k]] for k in lags])
            likeliest = int(np.argmax(log_likelihood > log_likelihood.max() - 1e-9))
            alike = sum(laws) / len(lags)
            for which, law in enumerate((q[row, i], laws[likeliest], posterior @ laws, alike)):
                found[which, row, i] = posterior @ (laws * np.log(laws / law)).sum(axis=1)
    return tuple(found)


def test_it_is_what_numpy_finds_with_loops(tmp_path: Path) -> None:
    make(tmp_path / "run")
    run = sih.open_run(tmp_path / "run")
    kls = in_numpy(run, 200)
    found = measure(run.model, run.task, least=200, most=200)
    assert found.sequences == 200
    spans = {(2, 11): found, **{(each.first - 1, each.last): each for each in found.windows}}
    assert [each.label for each in found.windows] == ["4-8", "9-11"]
    for (a, b), measured in spans.items():
        x, y, z, u = (kl[:, a:b].mean(axis=1) for kl in kls)
        for values, estimate in (
            (x, measured.kl),
            (y, measured.ml),
            (z, measured.bma),
            (u, measured.alike),
        ):
            assert estimate.pair() == pytest.approx(
                (values.mean(), values.std(ddof=1) / 200**0.5), rel=1e-9
            )
        r = x.mean() / y.mean()
        covariance = np.cov(x, y) / 200
        variance = (
            covariance[0, 0] - 2 * r * covariance[0, 1] + r * r * covariance[1, 1]
        ) / y.mean() ** 2
        assert measured.kl_over_ml.pair() == pytest.approx((r, math.sqrt(variance)), rel=1e-6)
        assert measured.way.pair() == pytest.approx(way_in_numpy(x, y, u), rel=1e-6, nan_ok=True)


def way_in_numpy(kl: np.ndarray, ml: np.ndarray, alike: np.ndarray) -> tuple[float, float]:
    """(alike - kl) / (alike - ml), and its error by the gradient in all three means and their covariance."""
    if alike.mean() <= ml.mean():
        return math.nan, math.nan
    x, y, u = kl.mean(), ml.mean(), alike.mean()
    gradient = np.array([-1 / (u - y), (u - x) / (u - y) ** 2, (x - y) / (u - y) ** 2])
    variance = gradient @ (np.cov([kl, ml, alike]) / len(kl)) @ gradient
    return (u - x) / (u - y), math.sqrt(variance)


def on_tokens(
    law: Callable[..., torch.Tensor], task: sih.Task, sequences: int = 400
) -> RunEvaluation:
    """What is found of a model that predicts by this law."""

    model = sih.DisentangledTransformer(num_states=task.num_states, length=task.length, heads=(1,))
    model.predict = lambda tokens: law(tokens, task)  # type: ignore[method-assign, assignment, misc]
    return measure_on(next(fresh_sequences(task))[:sequences], model, task)


def test_the_way_is_0_of_the_candidates_alike_1_of_ml_and_more_of_bma() -> None:
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 2, 3), length=80)
    by = {
        law: on_tokens(law, task)
        for law in (candidates_alike, sih.maximum_likelihood, sih.bma, sih.stationary_law)
    }
    assert list(by[sih.bma].ways) == ["17-32", "33-64", "65-79"]
    assert all(
        way.pair() == pytest.approx((0, 0), abs=1e-9) for way in by[candidates_alike].ways.values()
    )
    assert all(
        way.pair() == pytest.approx((1, 0), abs=1e-9)
        for way in by[sih.maximum_likelihood].ways.values()
    )
    assert all(way.mean > 1 for way in by[sih.bma].ways.values())
    assert all(way.mean < 0 for way in by[sih.stationary_law].ways.values())
    assert [found.found for found in by.values()] == [False, True, True, False]

    def part(share: float) -> Callable[..., torch.Tensor]:
        return lambda tokens, task: (
            share * sih.maximum_likelihood(tokens, task)
            + (1 - share) * candidates_alike(tokens, task)
        )

    assert not on_tokens(part(0.5), task).found
    assert on_tokens(part(0.9), task).found
    assert "the circuit is not found" in by[candidates_alike].verdict


def test_where_ml_is_no_better_than_the_candidates_alike_no_model_has_found_the_circuit() -> None:
    """Of rows that hardly differ the lag can't be told: there the worst model would have come the farthest."""
    rows = [[0.34, 0.33, 0.33], [0.33, 0.34, 0.33], [0.33, 0.33, 0.34]]
    task = sih.Task(rows, lags=(1, 2), length=40)

    def bad(tokens: torch.Tensor, task: sih.Task) -> torch.Tensor:
        return torch.tensor([0.8, 0.1, 0.1], dtype=torch.float64).expand(*tokens.shape, 3)

    found = on_tokens(bad, task)
    assert found.windows[-1].alike.mean < found.windows[-1].ml.mean
    assert found.windows[-1].kl.mean > 100 * found.windows[-1].ml.mean
    assert all(math.isnan(number) for window in found.windows for number in window.way.pair())
    assert not found.found


def test_the_candidates_count_alike_whatever_their_prior() -> None:
    P = [[0.9, 0.1], [0.2, 0.8]]
    task = sih.Task(P, lags=(1, 3), length=20, lag_prior=[0.9, 0.1])
    tokens = next(fresh_sequences(task))[:5]
    law = candidates_alike(tokens, task)
    for b, s in enumerate(tokens.tolist()):
        for i in range(2, 20):
            assert law[b, i].tolist() == pytest.approx(
                [(P[s[i]][a] + P[s[i - 2]][a]) / 2 for a in (0, 1)]
            )


def test_too_short_a_length_finds_nothing() -> None:
    task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2), length=17)
    found = on_tokens(sih.bma, task)
    assert (found.ways, found.found) == ({}, False)
    assert found.verdict.startswith("length too short to tell")
    assert list(on_tokens(sih.bma, task.with_length(18)).ways) == ["17-17"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_others_find_the_same_on_other_sequences(name: str) -> None:
    found, (wanted, error) = sih.evaluate(name).kl_over_ml, ELSEWHERE[name]
    assert abs(found.mean - wanted) < 3.5 * math.hypot(found.error, error)


@pytest.mark.parametrize("changes", [{}, {"fresh": True}, {"switch_rate": 0.1}])
def test_every_kind_of_task_is_evaluated_by_its_own_truth(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """Beside plain KL to the truth, by what was drawn, on other sequences."""
    make(tmp_path / "run", SHORT.replace(**changes))
    run = sih.open_run(tmp_path / "run")
    found = measure(run.model, run.task, least=2048, most=2048)
    batch = sih.sample(run.task, 8000, rng=5)
    with torch.no_grad():
        laws = {"kl": run.model.predict(batch.tokens), "bma": sih.bma(batch.tokens, run.task)}
    laws["ml"] = sih.maximum_likelihood(batch.tokens, run.task)
    laws["alike"] = candidates_alike(batch.tokens, run.task)
    for name, law in laws.items():
        plain = sih.kl_to_truth(law, batch, run.task)[:, run.task.max_lag : -1].mean(dim=1)
        error = math.hypot(plain.std().item() / 8000**0.5, getattr(found, name).error)
        assert abs(getattr(found, name).mean - plain.mean().item()) < 4 * error


def test_sequences_are_no_runs_batches_nor_held_out() -> None:
    task = SHORT.task.build().with_length(64)
    fresh = {tuple(row) for row in next(fresh_sequences(task)).tolist()}
    assert len(fresh) == 1024
    assert fresh == {tuple(row) for row in next(fresh_sequences(task)).tolist()}
    for seed in range(40):
        others = sih.sample(task, 1024, rng=seed).tokens.tolist()
        assert not fresh & {tuple(row) for row in others}
    config = SHORT.replace(length=64, held_out=1024)
    assert not fresh & {
        tuple(row) for row in config.held_out_batch(config.task.build()).tokens.tolist()
    }


def test_sequences_are_doubled_until_the_ratio_is_known(tmp_path: Path) -> None:
    make(tmp_path / "run")
    run = sih.open_run(tmp_path / "run")
    few, more = (measure(run.model, run.task, least=n, most=n) for n in (256, 2048))
    assert 2 * few.kl_over_ml.error > max(0.02, 0.02 * few.kl_over_ml.mean)
    found = measure(run.model, run.task, least=256, most=2**16)
    assert 2 * found.kl_over_ml.error <= max(0.02, 0.02 * found.kl_over_ml.mean)
    assert math.log2(found.sequences / 256).is_integer()
    before = measure(run.model, run.task, least=found.sequences // 2, most=found.sequences // 2)
    assert 2 * before.kl_over_ml.error > max(0.02, 0.02 * before.kl_over_ml.mean)
    assert (
        measure(run.model, run.task, least=256, most=2048).kl.pair() == more.kl.pair()
    )  # stopped by the limit


def test_one_lag_leaves_nothing_to_know(tmp_path: Path) -> None:
    make(tmp_path / "run", SHORT.replace(lags=(1,)))
    found = sih.evaluate(tmp_path / "run")
    assert (found.ml.mean, found.sequences) == (0, LEAST)
    assert not math.isfinite(found.kl_over_ml.mean)
    assert math.isnan(found.way.mean)
    assert not found.found


def test_too_short_a_sequence_is_refused() -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=3)
    model = sih.Transformer(num_states=2, length=3, heads=(1,), dim=4, qk_dim=2)
    with pytest.raises(FieldError, match="length 3 has no position past the first 2"):
        measure(model, task)


@pytest.mark.parametrize("name", RunStore().names())
def test_a_shipped_model_has_its_evaluation(name: str) -> None:
    found = sih.open_run(name).evaluation
    assert found is not None, f"sih runs evaluate --keep {name}"
    ratio = found.kl_over_ml
    assert LEAST <= found.sequences <= MOST
    assert 2 * ratio.error <= max(0.02, 0.02 * ratio.mean)
    assert found.bma.mean < min(found.ml.mean, found.kl.mean, found.alike.mean)
    for window in (window for window in found.windows if window.late):
        x, y, u = window.kl.mean, window.ml.mean, window.alike.mean
        assert window.way.mean == pytest.approx((u - x) / (u - y), rel=1e-4)
    noted = json.loads((SHIPPED / name / EVALUATION).read_text())
    assert (
        noted["weights"]
        == hashlib.sha256((SHIPPED / name / "weights.safetensors").read_bytes()).hexdigest()
    )


def test_a_shipped_evaluation_comes_out_again() -> None:
    """But for the rounding of the weights, which moves the KL by less than 0.05 %."""
    run = sih.open_run("paper-1.2.3-1.1.1-length32")
    found, kept = measure(run.model, run.task), sih.evaluate(run)
    assert (kept.sequences, len(kept.windows)) == (found.sequences, len(found.windows))
    for a, b in zip((found, *found.windows), (kept, *kept.windows), strict=True):
        for name in MEASURED:
            assert getattr(a, name).pair() == pytest.approx(
                getattr(b, name).pair(), rel=5e-4, nan_ok=True
            )
