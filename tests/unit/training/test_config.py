from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from support.small_configs import SMALL, small

import sih
from sih.checks import FieldError
from sih.models.disentangled.dense import DisentangledShape
from sih.models.standard.transformer import TransformerShape
from sih.training.config import HELD_OUT_SEED, PARTS, RENAMED, TrainConfig
from sih.training.recipes.recipe import StagedRecipe
from sih.training.recipes.tied_tables import TiedTables
from sih.training.task_config import TaskConfig


def test_fields_by_flat_name_words_and_whole_parts() -> None:
    config = TrainConfig(model="disentangled", init="harmonic", lags=[1, 3], heads=(1, 1, 1), steps=40, max_period=4)
    assert config.task.lags == (1, 3)
    assert config.model == DisentangledShape(heads=(1, 1, 1))
    assert config.recipe == TiedTables(max_period=4)
    assert (config.model.kind, config.recipe.name, config.optimiser.name) == ("disentangled", "harmonic", "adam")
    whole = TrainConfig(
        task=TaskConfig(lags=(1, 3)), model=config.model, recipe=TiedTables(), optimiser=config.optimiser, max_period=4
    )
    assert whole == config
    assert TrainConfig(**config.flat()) == config
    assert hash(whole) == hash(config)


def test_every_field_has_one_flat_name() -> None:
    names = [field.name for part in PARTS for field in dataclasses.fields(getattr(SMALL, part))]
    assert len(names) == len(set(names))
    assert set(SMALL.flat()) == {*names, "model", "init", "optimiser", "seed", "stored"}
    assert SMALL.unusual() == {
        "lags": (1, 2), "states": 3, "length": 12, "heads": (1, 2), "dim": 8, "qk_dim": 4, "steps": 6, "batch": 5,
        "evaluate_every": 4, "held_out": 7,
    }  # fmt: skip
    assert SMALL.heads == (1, 2)


def test_some_fields_replaced() -> None:
    other = SMALL.replace(model="disentangled", init="harmonic", steps=9)
    assert other == TrainConfig(
        model="disentangled", init="harmonic", lags=(1, 2), states=3, length=12, heads=(1, 2), qk_dim=4, steps=9,
        batch=5, evaluate_every=4, held_out=7,
    )  # fmt: skip
    assert SMALL.replace(task=TaskConfig(length=20)).task == TaskConfig(length=20)
    assert SMALL.replace(model=TransformerShape(dim=16)).model == TransformerShape(dim=16)
    assert dataclasses.replace(SMALL, seed=3) == SMALL.replace(seed=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.seed = 3  # type: ignore[misc]


def test_old_names_of_fields() -> None:
    recipe = small(init="harmonic", dim=30, held=2, shorter=((3, 5),)).recipe
    assert isinstance(recipe, StagedRecipe)
    assert (recipe.frozen_steps, recipe.length_schedule) == (2, ((3, 5),))


def test_held_out_sequences_are_those_of_the_matrixs_seed() -> None:
    """What `HELD_OUT_SEED` says of itself: to torch's generator on the CPU it is 0."""
    task = small(matrix_seed=5).task.build()
    expected = sih.sample(task, 7, rng=torch.Generator().manual_seed(5))
    assert torch.equal(small(matrix_seed=5).held_out_batch(task).tokens, expected.tokens)
    assert HELD_OUT_SEED % 2**32 == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "convolution"}, "model must be one of standard, disentangled; got 'convolution'"),
        ({"lags": (2, 1)}, "increasing"),
        ({"heads": ()}, "heads"),
        ({"length": 3}, "length must be at least 4 for lags .1, 2.: one next token past the first 2 .*; got 3"),
        ({"steps": 0}, "steps must be a whole number, at least 1; got 0"),
        ({"batch": -1}, "batch"),
        ({"learning_rate": math.nan}, "learning_rate is a positive number"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"warmup": 7}, "0 to 6; got 7"),
        ({"schedule": "square"}, "schedule"),
        ({"stored": "int8"}, "stored must be one of float32, float16; got 'int8'"),
        ({"init": "magic"}, "init must be one of"),
        ({"init": "harmonic", "max_period": 9}, "takes 27 of dim=8"),
        ({"length_schedule": ((3, 12),)}, "length_schedule"),
        ({"shorter": ((3, 5), (2, 6))}, "length_schedule is pairs"),
        ({"seed": -1}, "seed"),
        ({"length": 2}, "above the largest lag"),
        ({"matrix": ((0.5, 0.5), (0.5, 0.5))}, "states=3 does not fit"),
        ({"concentration": -1.0}, "concentration"),
        ({"init": "harmonic", "dim": 30, "held": 7}, "frozen_steps is a number of steps, 0 to 6"),
        ({"init": "harmonic", "dim": 30, "heads": (2,), "held": 1}, "of two layers or more"),
        ({"lag_prior": (0.5, 0.6)}, "lag_prior is one positive probability"),
        ({"optimiser": "sgd"}, "optimiser must be one of adam, soap; got 'sgd'"),
        ({"model": "disentangled", "dim": 8}, "no field 'dim'; it has batch, betas,"),
        ({"colour": 1}, "no field 'colour'"),
    ],
)
def test_bad_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")) as refused:
        TrainConfig(**{**_fields(changes), **changes})
    assert isinstance(refused.value, FieldError)
    assert refused.value.field in {RENAMED.get(name, name) for name in changes} | {"states"}


def _fields(changes: dict[str, Any]) -> dict[str, Any]:
    """The small configuration's fields, but for what another kind of model does not have."""
    return {name: value for name, value in SMALL.unusual().items() if name != "dim" or "model" not in changes}
