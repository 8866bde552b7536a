from __future__ import annotations

import statistics

import pytest
import torch
from support import oracles
from support.oracles_family import switching_bma
from support.pictures import through_file

import sih
from sih.beyond.switching_lags import switching as switching_lags
from sih.beyond.switching_lags import switching_figure
from sih.beyond.switching_lags.switching import BAYES, FILTER, ONE_LAG, PAPER
from sih.task import Task
from sih.training.runs.run_store import RunStore


def test_those_who_assume_one_lag_lose_where_it_switches() -> None:
    config = switching_lags.SwitchingConfig(
        rates=(0.0, 0.1), sequences=64, models=("standard-1.2.3", "none")
    )
    data = switching_lags.compute(config, RunStore())
    assert data.missing == ("none",)
    kl = {name: [mean for mean, _ in found] for name, found in data.by_rate.items()}
    assert kl[FILTER][0] == kl[ONE_LAG][0]  # at rate 0 the filter is BMA
    for name in (ONE_LAG, BAYES, PAPER, "standard-1.2.3"):
        assert kl[name][1] > 1.5 * kl[FILTER][1], name
    before, after = (sum(data.along[ONE_LAG][a:b]) / (b - a) for a, b in ((40, 63), (64, 87)))
    assert after > 5 * before
    assert sum(data.along[FILTER][80:]) < 0.5 * sum(data.along[ONE_LAG][80:])  # it has forgotten
    assert len(switching_figure.table(data)) == 6
    assert len(switching_figure.draw(data).axes) == 2
    assert switching_lags.EXPERIMENT.beyond


def test_the_filter_has_the_rate_that_the_caption_states() -> None:
    """Left it is 1 / switch_at, right the true one, against sums over every path of lags."""
    config = switching_lags.SwitchingConfig(
        (0.05, 0.4), 4, models=(), lags=(1, 2), num_states=3, length=9, sequences=6
    )
    data = switching_lags.compute(config, RunStore())
    rng = torch.Generator().manual_seed(config.seed)  # the same draws again
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 9)
    P, pi = task.P.tolist(), task.stationary.tolist()

    def kl(tokens: list[int], lag_of: list[int], i: int, rate: float | None) -> float:
        """Of the law of the token after i, which follows the lag `lag_of[i + 1]`. None: one lag, that stays."""
        true = P[tokens[i + 1 - lag_of[i + 1]]] if i >= 1 else pi
        if rate is None:
            return oracles.kl(true, oracles.bma(tokens[: i + 1], P, pi, [1, 2], [0.5, 0.5]))
        return oracles.kl(true, switching_bma(tokens[: i + 1], P, pi, [1, 2], rate)[0])

    batch = sih.sample(switching_lags.one_switch(task, 4), 6, rng=rng)
    pairs = [[(1, 2), (2, 1)][hypothesis] for hypothesis in batch.lags.tolist()]
    lags = [[before] * 4 + [after] * 5 for before, after in pairs]
    for name, rate in ((FILTER, 1 / 4), (ONE_LAG, None)):
        each = [
            [kl(x, k, i, rate) for i in range(8)]
            for x, k in zip(batch.tokens.tolist(), lags, strict=True)
        ]
        assert data.along[name] == pytest.approx(
            [statistics.fmean(at) for at in zip(*each, strict=True)], abs=1e-9
        )
    for n, rate in enumerate(config.rates):
        batch = sih.sample(sih.SwitchingTask(task.P, (1, 2), 9, rate), 6, rng=rng)
        sequences = list(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True))
        for name, assumed in ((FILTER, rate), (ONE_LAG, None)):
            means = [
                statistics.fmean(kl(x, k, i, assumed) for i in range(2, 8)) for x, k in sequences
            ]
            expected = statistics.fmean(means), statistics.stdev(means) / 6**0.5
            assert data.by_rate[name][n] == pytest.approx(expected, abs=1e-9)
        assert data.by_rate[BAYES][n] == pytest.approx(data.by_rate[ONE_LAG][n], rel=1e-3)
        assert data.by_rate[PAPER][n] != pytest.approx(data.by_rate[ONE_LAG][n], rel=1e-2)


def test_the_caption_states_what_is_measured() -> None:
    config = switching_lags.SwitchingConfig()
    caption = switching_figure.caption(config)
    assert (
        f"lags {{{','.join(map(str, config.lags))}}}, {config.num_states} states, T = {config.length}"
        in caption
    )
    assert f"one switch of the lag, at token {config.switch_at}," in caption
    assert f"the true rate (left: at 1/{config.switch_at})" in caption


def test_one_switch_is_a_task_of_pairs_of_lags() -> None:
    task = Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 3), length=8)
    once = switching_lags.one_switch(task, 5)
    position = torch.arange(9)
    assert once.parents(9)[0].tolist() == [-1] * 3 + [
        int(i) - (1 if i < 5 else 3) for i in position[3:]
    ]
    assert once.parents(9)[1].tolist() == [-1] * 3 + [
        int(i) - (3 if i < 5 else 1) for i in position[3:]
    ]


def test_the_data_survive_a_file() -> None:
    config = switching_lags.SwitchingConfig(rates=(0.1,), sequences=4, models=())
    through_file(switching_lags.compute(config, RunStore()))
