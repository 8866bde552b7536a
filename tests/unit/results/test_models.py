"""Models are chosen by what they are, and never by their names."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.small_runs import make_all

from sih.paper import agreement, scaling, trained
from sih.results.cache import data_key, models_read
from sih.results.models import (
    Models,
    TrainedModel,
    described,
    heads_of,
    model_of,
    shipped_models,
    unsettled,
)
from sih.training.config import TrainConfig
from sih.training.how_trained import PAPER_KINDS
from sih.training.runs.run_store import RunStore

MODEL = TrainedModel("a", "standard", (1, 2, 3), 32, (1, 3, 1), "paper", 0, None)


def test_models_fit_by_what_they_are() -> None:
    one_head, deep = (
        dataclasses.replace(MODEL, heads=heads) for heads in ((1, 1, 1), (1, 3, 1, 1))
    )
    assert MODEL in Models("standard", "paper", "needed")
    assert MODEL not in Models("disentangled")
    assert MODEL not in Models(training="SOAP")
    assert MODEL not in Models(longer_than=32)
    assert MODEL not in Models(lags=(1, 2))
    assert MODEL not in Models(number_of_lags=2)
    assert MODEL not in Models(heads="one")
    assert one_head in Models(heads="one")
    assert dataclasses.replace(one_head, lags=(1, 3)) in Models(heads="needed", number_of_lags=2)
    assert deep not in Models()
    assert deep in Models(layers=(4, 5))
    assert deep in Models(layers=None)
    wide = dataclasses.replace(MODEL, dim=128)
    assert (wide in Models(), wide in Models(usual_width=True)) == (True, False)
    two_heads = dataclasses.replace(MODEL, heads=(1, 2, 1))
    assert heads_of(two_heads) is None
    fewer = Models(heads="fewer")
    assert [one in fewer for one in (two_heads, one_head, MODEL, deep)] == [
        True,
        True,
        False,
        False,
    ]
    assert dataclasses.replace(one_head, lags=(1, 3)) not in fewer
    ten = dataclasses.replace(MODEL, states=10)
    assert [ten in one for one in (Models(), Models(states=(3, 10)), Models(states=None))] == [
        False,
        True,
        True,
    ]
    assert MODEL not in Models(states=(3, 10))


def test_a_choice_says_itself() -> None:
    assert str(Models("standard", "paper", "needed")) == (
        "standard, 3 layers, as many heads as the circuit needs, trained as in the paper"
    )
    assert (
        str(Models(layers=(4, 5), longer_than=64))
        == "any kind, 4 or 5 layers, more than 64 positions"
    )
    assert str(Models(heads="fewer", states=(3, 10))) == (
        "any kind, 3 layers, fewer second-layer heads than the circuit needs, 3 or 10 states"
    )


def test_every_shipped_model_of_the_papers_task_has_a_way_of_training() -> None:
    every = shipped_models(Models(layers=None, states=None))
    kinds = {name: RunStore().run(name).config.model.kind for name in RunStore().names()}
    of_the_papers_task = RunStore().names(papers_task=True)
    assert list(every) == [name for name in of_the_papers_task if kinds[name] in PAPER_KINDS]
    assert {one.training for one in every.values()} == {"paper", "SOAP", "Adam"}
    assert [name for name, one in every.items() if one.papers_setting] == ["paper-1.2.3"]
    assert {name for name, one in every.items() if one.training == "paper"} == {
        name for name in every if name.startswith("paper-")
    }


@pytest.mark.parametrize(
    ("kl", "falls"),
    [
        ([1.0] * 20, False),
        ([2.0] * 16 + [1.0, 1.0, 0.97, 0.97], True),
        ([2.0] * 16 + [1.0, 1.0, 0.985, 0.985], False),  # by less than 2 %
        ([2.0] * 16 + [0.9, 1.0, 1.0, 0.9], False),  # both tenths have the same mean
        ([1.0, 0.9], True),
        ([1.0], False),  # nothing to compare with
    ],
)
@pytest.mark.parametrize("schedule", ["constant", "cosine"])
def test_a_kl_that_still_falls_is_that_of_the_last_two_tenths(
    kl: list[float], falls: bool, schedule: str
) -> None:
    evaluations = [{"step": 1_000 * n, "kl": value} for n, value in enumerate(kl, 1)]
    run: Any = SimpleNamespace(config=TrainConfig(schedule=schedule), evaluations=evaluations)
    said = f"at {len(kl)},000 steps, where its KL still falls"
    assert unsettled(run) == (said if falls and schedule == "constant" else "")


def test_a_plateau_is_not_settled_where_another_was_given_more_steps(tmp_path: Path) -> None:
    short = TrainConfig(
        lags=(1, 4), heads=(1, 1, 1), length=8, steps=2, evaluate_every=1, held_out=2
    )
    configs = {
        "short": short,
        "long": short.replace(steps=3, length=10),
        "other": short.replace(lags=(1, 5)),
    }
    make_all(tmp_path, configs)
    runs = [RunStore(tmp_path).run(tmp_path / name) for name in configs]
    found = described(runs)
    said = "at 2 steps, where another run was given 3"
    assert said in found["short"].unsettled or "still falls" in model_of(runs[0]).unsettled
    assert said not in found["long"].unsettled
    assert said not in found["other"].unsettled  # the only one of its lags
    assert shipped_models(Models())["paper-1.2.3-length64"].unsettled == (
        "at 20,000 steps, where another run was given 50,000"
    )


def test_a_shipped_model_is_the_same_whatever_it_is_compared_with() -> None:
    for name, model in shipped_models(Models(layers=None, states=None)).items():
        assert described([RunStore().run(name)]) == {name: model}


def test_a_users_own_runs_are_not_counted_in_verdicts(tmp_path: Path) -> None:
    name = "paper-1.2.3"
    make_all(
        tmp_path,
        {name: TrainConfig(lags=(1, 2), heads=(1, 1, 1), length=8, steps=1, held_out=2, batch=2)},
    )
    store = RunStore(tmp_path)
    assert store.find(name) == tmp_path / name
    for experiment in (trained.EXPERIMENT, agreement.EXPERIMENT, scaling.EXPERIMENT):
        read = models_read(experiment, store)
        assert set(read.values()) == {"shipped"}
        assert read == models_read(experiment, RunStore())
        assert data_key(experiment, store) == data_key(experiment, RunStore())
