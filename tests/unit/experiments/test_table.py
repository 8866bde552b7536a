from __future__ import annotations

import pickle

import pytest

from sih.experiments.table import EXPERIMENTS, SECONDS, experiment_named, seconds_of


def test_an_unknown_figure_is_answered_with_the_names() -> None:
    with pytest.raises(ValueError, match=r"no figure 'tezer'; the figures are .*claim_histogram"):
        experiment_named("tezer")
    assert experiment_named("heads") is EXPERIMENTS["heads"]


def test_every_experiment_can_go_to_another_process() -> None:
    for experiment in EXPERIMENTS.values():
        assert pickle.loads(pickle.dumps(experiment)) == experiment


def test_the_papers_come_before_ours() -> None:
    names = list(EXPERIMENTS)
    assert (
        names.index("teaser")
        < names.index("trained")
        < names.index("claim_cumulative_25")
        < names.index("recipes")
    )


def test_what_is_not_measured_counts_as_the_mean() -> None:
    assert SECONDS.keys() == EXPERIMENTS.keys(), (
        "python -m benchmarks.experiment_seconds measures them"
    )
    assert seconds_of("teaser") == SECONDS["teaser"]
    assert min(SECONDS.values()) < seconds_of("a new one") < max(SECONDS.values())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_set_of_lags_of_a_figure_is_one(name: str) -> None:
    config = EXPERIMENTS[name].config
    for lags in (
        *getattr(config, "lag_sets", ()),
        *([config.lags] if hasattr(config, "lags") else []),
    ):
        assert list(lags) == sorted(set(lags) - {0}), lags
