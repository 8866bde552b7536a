"""The circuit as a standard transformer: a value has its own coordinate, and the disentangled form the same output."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import sih

TASK = sih.Task(sih.random_transition_matrix(4, rng=2), (1, 3, 4), 30, lag_prior=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("words", [{}, {"target": "bayes"}, {"readout": "logit"}], ids=str)
def test_it_computes_what_the_blocks_compute(words: dict[str, Any]) -> None:
    tokens = sih.sample(TASK.with_length(70), 4, rng=0).tokens
    blocks = sih.construct(TASK, kind="relative", **words)
    standard = sih.construct(TASK, kind="relative", form="standard", **words)
    far = (blocks.predict(tokens) - standard.predict(tokens)).abs().max()
    assert far < (1e-8 if "target" in words else 1e-12)
    for path in ("plain", "fused"):
        assert (standard(tokens, path=path) - standard(tokens)).abs().max() < 1e-8


def test_its_stream_holds_what_each_coordinate_is_for() -> None:
    model = sih.construct(TASK, kind="relative", form="standard")
    tokens = sih.sample(TASK, 3, rng=0).tokens
    S, K, top, trace = 4, 3, 4, model.trace(tokens)
    p = trace["1/stream"][:, 1:, S + 1 : S + 1 + K]
    for b, row in enumerate(tokens.tolist()):
        for i in range(top, len(row)):
            chances = torch.stack([TASK.P[row[i - k], row[i]] for k in TASK.lags])
            torch.testing.assert_close(p[b, i], chances / chances.sum())
    early = trace["1/stream"][:, :, S + 1 + K]
    assert torch.equal(early.round(decimals=12), (torch.arange(31) <= top).double().expand(3, -1))
    means = trace["2/stream"][:, 1:, S + 2 + K : S + 2 + 2 * K]
    torch.testing.assert_close(means[:, -1], p[:, top:].mean(dim=1))
    _, second, third = model.each_layer()
    assert (second.aK, second.aV, third.aV) == (None, None, None)


def test_queries_are_as_wide_as_the_larger_of_states_and_lags() -> None:
    for lags in ((1, 2), (1, 2, 3, 4, 5, 6)):
        model = sih.construct(
            sih.Task(TASK.P, lags, 20), kind="relative", form="standard", dtype=torch.float64
        )
        config = model.config
        assert (config.dim, config.qk_dim) == (10 + 2 * len(lags) + 1, max(4, len(lags)) + 1)
        assert sih.verify(model, sih.Task(TASK.P, lags, 50), size=2).ok
