from __future__ import annotations

from typing import Any

import pytest

import sih
from sih.training.config import TrainConfig
from sih.training.how_trained import how_trained, trained_briefly
from sih.training.presets import preset
from sih.training.runs.run_store import RunStore

START = "harmonic start, short sequences first, falling learning rate, "
ROLES = f"SOAP, {START}layers restricted to their roles "
FROZEN = "middle layers frozen and the others restricted to their roles "
TABLES = "tables shared by positions, short sequences first, falling learning rate, "
WAYS = {
    "paper-1.2.3": "Adam, unaided (the paper's setting)",
    "paper-1.2.3-length64": "Adam, unaided",
    "paper-disentangled-3.5.7-length32": "Adam, unaided",
    "fresh-1.2": "Adam, a new matrix for each sequence, falling learning rate",
    "standard-1.2.3": f"{ROLES}for 600 of 2,000 steps",
    "standard-1.2.3-3.3": f"Adam, {START}{FROZEN}for 400 of 3,600 steps",
    "disentangled-1.3": f"Adam, {TABLES}{FROZEN}for 200 of 2,400 steps",
    "disentangled-1.3.4": f"SOAP, {TABLES}{FROZEN}for 200 of 1,600 steps",
}
"""One model of each way in which the shipped ones were trained, read from its config.json by eye."""


@pytest.mark.parametrize("name", WAYS)
def test_each_way_has_its_phrase(name: str) -> None:
    assert how_trained(sih.open_run(name).config) == WAYS[name]


def test_the_shipped_models_are_of_so_many_ways() -> None:
    configs = [RunStore().run(name).config for name in RunStore().names()]
    counts: dict[str, int] = {}
    for config in configs:
        words = f"{trained_briefly(config)} {config.model.kind}"
        counts[words] = counts.get(words, 0) + 1
    assert counts == {
        "Adam only standard": 14,
        "Adam only disentangled": 2,
        "Adam only relative": 6,
        "Adam, fresh P standard": 1,
        "SOAP, roles standard": 25,
        "Adam, frozen standard": 3,
        "Adam, tied disentangled": 4,
        "SOAP, tied disentangled": 2,
    }
    assert max(len(trained_briefly(config)) for config in configs) <= 13


@pytest.mark.parametrize(
    ("changes", "is_the_papers"),
    [
        ({}, True),
        ({"lags": (1, 3), "heads": (1, 1, 1), "matrix_seed": 4, "seed": 9, "steps": 7}, True),
        ({"model": "disentangled", "stored": "float16"}, True),
        ({"matrix_law": "uniform", "matrix_seed": 11}, True),
        ({"model": "relative"}, False),
        *(
            ({name: value}, False)
            for name, value in {"length": 64, "dim": 128, "batch": 64, "states": 4}.items()
        ),
        *(
            ({name: value}, False)
            for name, value in {"learning_rate": 2e-3, "optimiser": "soap"}.items()
        ),
        *(
            ({name: value}, False)
            for name, value in {"fresh": True, "switch_rate": 0.1, "schedule": "cosine"}.items()
        ),
        *(
            ({name: value}, False)
            for name, value in {"length_schedule": ((10, 32),), "init": "normal"}.items()
        ),
    ],
)
def test_the_papers_setting_is_that_alone(changes: dict[str, Any], is_the_papers: bool) -> None:
    assert ("the paper's setting" in how_trained(TrainConfig(**changes))) is is_the_papers


def test_whatever_is_added_is_said() -> None:
    plain = how_trained(TrainConfig(length=64))
    assert plain == "Adam, unaided"
    for changes, words, brief in (
        ({"init": "normal"}, "Adam, normal start", "Adam, normal"),
        ({"schedule": "cosine"}, "Adam, falling learning rate", "Adam, rate falls"),
        ({"length_schedule": ((9, 32),)}, "Adam, short sequences first", "Adam, short first"),
        ({"switch_rate": 0.1}, "Adam, lags that switch", "Adam, switching"),
        ({"optimiser": "soap"}, "SOAP, unaided", "SOAP only"),
        ({"target": "distribution"}, "Adam, the true distributions as targets", "Adam, soft"),
        (
            {"init": "gpt2", "target": "distribution"},
            "Adam, gpt2 start, the true distributions as targets",
            "Adam, gpt2",
        ),
        ({"model": "relative"}, "Adam, unaided", "Adam only"),
    ):
        config = TrainConfig(length=64, **changes)
        assert (how_trained(config), trained_briefly(config)) == (words, brief)
    for name, words in (("harmonic", "Adam, frozen"), ("auto", "SOAP, roles")):
        assert trained_briefly(preset(name)) == words
