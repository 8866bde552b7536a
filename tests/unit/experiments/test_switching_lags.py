from __future__ import annotations

import torch
from support.pictures import through_file

from sih.experiments import switching_lags
from sih.experiments.switching_lags import BAYES, FILTER, ONE_LAG, PAPER
from sih.figures.switch_panels import draw_switching
from sih.runs.run_store import RunStore
from sih.task import Task


def test_those_who_assume_one_lag_lose_where_it_switches() -> None:
    config = switching_lags.SwitchingConfig(rates=(0.0, 0.1), sequences=64, models=("standard-1.2.3", "none"))
    data = switching_lags.compute(config, RunStore())
    assert data.missing == ["none"]
    kl = {name: [mean for mean, _ in found] for name, found in data.by_rate.items()}
    assert kl[FILTER][0] == kl[ONE_LAG][0]  # at rate 0 the filter is BMA
    for name in (ONE_LAG, BAYES, PAPER, "standard-1.2.3"):
        assert kl[name][1] > 1.5 * kl[FILTER][1], name
    before, after = (sum(data.along[ONE_LAG][a:b]) / (b - a) for a, b in ((40, 63), (64, 87)))
    assert after > 5 * before
    assert sum(data.along[FILTER][80:]) < 0.5 * sum(data.along[ONE_LAG][80:])  # it has forgotten
    assert len(switching_lags.table(data)) == 6
    assert len(draw_switching(data).axes) == 2
    assert switching_lags.EXPERIMENT.beyond


def test_one_switch_is_a_task_of_pairs_of_lags() -> None:
    task = Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 3), length=8)
    once = switching_lags.one_switch(task, 5)
    position = torch.arange(9)
    assert once.parents(9)[0].tolist() == [-1] * 3 + [int(i) - (1 if i < 5 else 3) for i in position[3:]]
    assert once.parents(9)[1].tolist() == [-1] * 3 + [int(i) - (3 if i < 5 else 1) for i in position[3:]]


def test_the_data_survive_a_file() -> None:
    config = switching_lags.SwitchingConfig(rates=(0.1,), sequences=4, models=())
    through_file(switching_lags.compute(config, RunStore()))
