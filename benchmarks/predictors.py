"""The predictors against a plain per-position NumPy transcription of the definitions; and how their cost grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

import sih
from benchmarks.timing import in_turn, machine, medians, ratio


def plain_bma(tokens: np.ndarray, task: sih.Task) -> np.ndarray:
    """At every position, the likelihood of everything before it, from the start: the definition, not a recursion."""
    P, log_P = task.P.numpy(), task.P.log().numpy()
    law = np.empty((*tokens.shape, task.num_states))
    for i in range(tokens.shape[1]):
        if i < task.max_lag - 1:
            law[:, i] = task.stationary.numpy()
            continue
        n = np.arange(task.max_lag, i + 1)
        scores = np.stack(
            [log_P[tokens[:, n - k], tokens[:, n]].sum(axis=1) for k in task.lags], axis=1
        )
        weights = np.exp(scores - scores.max(axis=1, keepdims=True)) * task.lag_prior.numpy()
        weights /= weights.sum(axis=1, keepdims=True)
        parents = np.stack([tokens[:, i - k + 1] for k in task.lags], axis=1)
        law[:, i] = np.einsum("bk,bks->bs", weights, P[parents])
    return law


def plain_selective(tokens: np.ndarray, task: sih.Task) -> np.ndarray:
    """The same for Prop. 1."""
    P = task.P.numpy()
    law = np.empty((*tokens.shape, task.num_states))
    for i in range(tokens.shape[1]):
        if i < task.max_lag - 1:
            law[:, i] = task.stationary.numpy()
            continue
        n = np.arange(task.max_lag, i + 1)
        p = np.stack([P[tokens[:, n - k], tokens[:, n]] for k in task.lags], axis=2)
        scores = (p / p.sum(axis=2, keepdims=True)).sum(axis=1) * 100.0 / max(1, len(n))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        parents = np.stack([tokens[:, i - k + 1] for k in task.lags], axis=1)
        law[:, i] = np.einsum("bk,bks->bs", weights, P[parents])
    return law


def main() -> None:
    rng = torch.Generator().manual_seed(0)
    P = sih.random_transition_matrix(5, rng=rng)
    task = sih.Task(P, (1, 2, 3), 128)
    tokens = sih.sample(task, 256, rng=rng).tokens
    assert np.abs(plain_bma(tokens.numpy(), task) - sih.bma(tokens, task).numpy()).max() < 1e-12
    assert (
        np.abs(plain_selective(tokens.numpy(), task) - sih.selective(tokens, task).numpy()).max()
        < 1e-12
    )
    print(f"predictors: 256 x 128, 5 states, lags 1 2 3 ({machine()}; medians of 7)")
    found = medians(
        {
            "plain bma": lambda: plain_bma(tokens.numpy(), task),
            "bma": lambda: sih.bma(tokens, task),
            "plain selective": lambda: plain_selective(tokens.numpy(), task),
            "selective": lambda: sih.selective(tokens, task),
            "maximum likelihood": lambda: sih.maximum_likelihood(tokens, task),
            "n-gram": lambda: sih.ngram(tokens, task),
        }
    )
    for name in ("bma", "selective"):
        plain, ours = found[f"plain {name}"], found[name]
        print(f"  {name}: plain {plain * 1e3:.1f} ms, sih {ours * 1e3:.1f} ms, {plain / ours:.1f}x")
    for name in ("maximum likelihood", "n-gram"):
        print(f"  {name}: {found[name] * 1e3:.1f} ms")

    print(
        "  other tasks at the same size, by the processor's time, over bma's (median of ratios, round by round):"
    )
    fresh, switching = sih.FreshTask(5, (1, 2, 3), 128), sih.SwitchingTask(P, (1, 2, 3), 128, 0.02)
    family: dict[str, Callable[[], object]] = {
        "bma": lambda: sih.bma(tokens, task),
        "P unknown": lambda: sih.bma(tokens, fresh),
        "switching lags": lambda: sih.bma(tokens, switching),
    }
    times = in_turn(family, rounds=31, clock=time.process_time)
    for name in ("P unknown", "switching lags"):
        print(f"    {name}: {ratio(times[name], times['bma']):.2f}x")
    print(
        "  and along one sequence (lags 1 2 3): ratio to bma, nanoseconds a token, which should stay level"
    )
    for length in (10_000, 100_000, 1_000_000):
        row = torch.randint(5, (1, length), generator=rng)
        calls: dict[str, Callable[[], object]] = {
            name: partial(sih.bma, row, one.with_length(length))
            for name, one in (("bma", task), ("P unknown", fresh), ("switching lags", switching))
        }
        times = in_turn(calls, rounds=3, clock=time.process_time)
        shown = (
            f"{name} {ratio(times[name], times['bma']):.2f}x, {min(times[name]) / length * 1e9:.0f} ns"
            for name in ("P unknown", "switching lags")
        )
        print(f"    {length:>9}: {'; '.join(shown)}")

    print("  growth in length (lags 1 2 3, one sequence): time a token should stay level")
    for length in (1_000, 10_000, 100_000, 1_000_000):
        long = sih.Task(P, (1, 2, 3), length)
        row = torch.randint(5, (1, length), generator=rng)
        took = medians({"": lambda row=row, long=long: sih.bma(row, long)}, rounds=3)[""]  # type: ignore[misc]
        print(f"    {length:>9}: {took * 1e3:8.2f} ms, {took / length * 1e9:7.1f} ns a token")
    print("  growth in lags (16 sequences of 4,096): time a lag should stay level")
    for count in (2, 4, 8, 16, 32, 64):
        wide = sih.Task(P, range(1, count + 1), 4096)
        rows = torch.randint(5, (16, 4096), generator=rng)
        took = medians({"": lambda rows=rows, wide=wide: sih.bma(rows, wide)}, rounds=3)[""]  # type: ignore[misc]
        print(f"    {count:>3} lags: {took * 1e3:8.2f} ms, {took / count * 1e3:6.2f} ms a lag")


if __name__ == "__main__":
    main()
