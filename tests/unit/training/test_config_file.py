from __future__ import annotations

import json
from typing import Any

import pytest
from support.small_configs import SMALL, small

from sih.training.config import TrainConfig
from sih.training.config_file import digest, from_json, to_json

P = ((0.5, 0.25, 0.25), (0.2, 0.3, 0.5), (1 / 3, 1 / 3, 1 / 3))
CONFIGS = (
    TrainConfig(),
    SMALL,
    small(matrix=P),
    small(shorter=((3, 5),), init="normal"),
    small(lag_prior=(0.25, 0.75)),
    small(model="disentangled", init="harmonic", held=2, stored="float16"),
    small(target="distribution"),
    small(init="gpt2"),
    small(model="disentangled", init="factors"),
)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_configuration_survives_json(config: TrainConfig) -> None:
    assert from_json(json.loads(json.dumps(to_json(config)))) == config


def test_the_form_of_today() -> None:
    values = to_json(SMALL)
    assert list(values) == [
        "version",
        "task",
        "model",
        "optimiser",
        "recipe",
        "evaluation",
        "seed",
        "stored",
        "target",
    ]
    assert values["version"] == 2
    assert values["model"] == {
        "kind": "standard",
        "heads": [1, 2],
        "dim": 8,
        "qk_dim": 4,
        "mlp_dim": None,
    }
    assert values["recipe"] == {"name": "uniform", "length_schedule": []}


def test_the_form_of_before() -> None:
    """It had no version, and every field whatever the kind of model and the recipe."""
    old: dict[str, Any] = {
        "model": "disentangled", "lags": [1, 2], "states": 3, "length": 12, "heads": [1, 2], "dim": 64, "qk_dim": 4,
        "mlp_dim": None, "init": "uniform", "max_period": 8, "held": 0, "shorter": [[3, 5]], "steps": 6,
    }  # fmt: skip
    config = TrainConfig(
        model="disentangled", lags=(1, 2), states=3, length=12, heads=(1, 2), qk_dim=4, steps=6,
        length_schedule=((3, 5),),
    )  # fmt: skip
    assert from_json(old) == config
    assert from_json({**old, "stored": "float16"}).stored == "float16"
    assert from_json({**old, "model": "standard", "dim": 32}).flat()["dim"] == 32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colour": 1}, "no field 'colour'"),
        ({"version": 3}, "version 3 of a configuration is not known; there are 1 and 2"),
        ({**to_json(SMALL), "colour": 1}, "no field 'colour'"),
        ({**to_json(SMALL), "task": {"lags": [2, 1]}}, "increasing"),
        ({**to_json(SMALL), "model": {"kind": "mamba"}}, "model must be one of"),
        ({**to_json(SMALL), "task": 3}, "'task' must be an object of its fields; got 3"),
        (
            {name: value for name, value in to_json(SMALL).items() if name != "recipe"},
            "'recipe' must be an object",
        ),
    ],
)
def test_other_files_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_json(values)


def test_a_file_may_still_name_a_concentration_beside_its_matrix() -> None:
    """Earlier versions let it stand there, and nothing came of it."""
    config = small(matrix=P)
    values = to_json(config)
    values["task"]["concentration"] = 2.0
    assert from_json(values) == config
    flat = {**config.flat(), "concentration": 2.0}
    assert from_json(flat) == config


def test_a_digest_knows_every_field_and_later_ones_where_they_are_used() -> None:
    digests = [digest(config) for config in CONFIGS]
    assert len(set(digests)) == len(digests)
    assert digest(small(lag_prior=None, target="sampled")) == digest(SMALL)
