from __future__ import annotations

import math

import pytest
from support.pictures import check_drawn_from_file

import sih
from sih.paper import certificates, certificates_figure
from sih.paper.certificates import (
    BAYES,
    MASKS,
    POSITIONS,
    POSTERIOR,
    PRINTED,
    PRINTED_LATE,
    PRINTED_SINK,
    TWO_LAGS,
)
from sih.training.runs.run_store import RunStore


def test_each_lag_set_has_the_circuits_it_allows() -> None:
    sets = ((1, 2), (1, 3), (1, 3, 4))
    config = certificates.CertificatesConfig(lag_sets=sets, length=24, matrices=1, sequences=2)
    data = certificates.compute(config, RunStore())
    always = {POSITIONS, BAYES, POSTERIOR}
    assert [set(error) for error in data.error] == [
        {MASKS, TWO_LAGS, PRINTED_SINK, PRINTED, PRINTED_LATE, *always},
        {TWO_LAGS, *always},
        always,
    ]
    assert data.heads == (2, 2, 4)
    assert [error[TWO_LAGS] for error in data.error[:2]] == pytest.approx([0, 0], abs=1e-9)
    check_drawn_from_file(certificates_figure.draw, data)
    assert [len(row) for row in certificates_figure.table(data)] == [4] * 9


def test_equation_3_by_loops() -> None:
    """With a sink the third layer's weights are those printed; without one they are not."""
    task = sih.Task(sih.random_transition_matrix(3, rng=4), (1, 2), 12)
    config = certificates.CertificatesConfig(sequences=3)
    found = dict(certificates.from_equation_3(config, task))
    tokens, worst = sih.sample(task, 3, rng=1).tokens, {True: 0.0, False: 0.0}
    for sink in worst:
        model = sih.construct(task, lam=500.0, beta=100.0, sink=sink)
        attention = model.trace(tokens)["3.1/attention"]
        for n, s in enumerate(tokens.tolist()):
            for i in range(2, 12):
                total = {1: 0.0, 2: 0.0}
                for j in range(2, i + 1):
                    p = {k: task.P[s[j - k], s[j]].item() for k in (1, 2)}
                    total = {k: total[k] + p[k] / (p[1] + p[2]) for k in (1, 2)}
                weight = {k: math.exp(100 / (i - 1) * total[k]) for k in (1, 2)}
                for k in (1, 2):
                    gap = abs(attention[n, i, i - k + 1].item() - weight[k] / sum(weight.values()))
                    worst[sink] = max(worst[sink], gap)
    assert found[PRINTED_SINK] == pytest.approx(worst[True], abs=1e-9)
    assert found[PRINTED_SINK] < 1e-12
    assert found[PRINTED] == pytest.approx(worst[False], abs=1e-9)
    assert found[PRINTED] > 0.1
    assert found[PRINTED_LATE] <= found[PRINTED]
