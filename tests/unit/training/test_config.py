from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from support.small_configs import SMALL, small

import sih
from sih.base.errors import FieldError
from sih.models.disentangled.dense import DisentangledShape
from sih.models.standard.transformer import TransformerShape
from sih.training.config import HELD_OUT_SEED, TrainConfig
from sih.training.config_file import digest
from sih.training.config_parts import RENAMED, SECTIONS, EvaluationConfig
from sih.training.optimiser import Adam
from sih.training.presets import preset
from sih.training.recipes.plain import Plain
from sih.training.recipes.recipe import StagedRecipe
from sih.training.recipes.tied_tables import TiedTables
from sih.training.task_config import TaskConfig


def test_fields_by_flat_name_words_and_whole_parts() -> None:
    config = TrainConfig(
        model="disentangled", init="harmonic", lags=[1, 3], heads=(1, 1, 1), steps=40, max_period=4
    )
    assert config.task.lags == (1, 3)
    assert config.model == DisentangledShape(heads=(1, 1, 1))
    assert config.recipe == TiedTables(max_period=4)
    assert (config.model.kind, config.recipe.name, config.optimiser.name) == (
        "disentangled",
        "harmonic",
        "adam",
    )
    whole = TrainConfig(
        task=TaskConfig(lags=(1, 3)),
        model=config.model,
        recipe=TiedTables(),
        optimiser=config.optimiser,
        max_period=4,
    )
    assert whole == config
    assert TrainConfig(**config.flat()) == config
    assert hash(whole) == hash(config)


def test_every_field_has_one_flat_name() -> None:
    names = [field.name for part in SECTIONS for field in dataclasses.fields(getattr(SMALL, part))]
    assert len(names) == len(set(names))
    assert set(SMALL.flat()) == {*names, "model", "init", "optimiser", "seed", "stored", "target"}
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
        (
            {"model": "convolution"},
            "model must be one of standard, disentangled, relative, relative-disentangled; got 'convolution'",
        ),
        ({"lags": (2, 1)}, "increasing"),
        ({"heads": ()}, "heads"),
        (
            {"length": 3},
            "length must be at least 4 for lags [1, 2]: one next token past the first 2 positions",
        ),
        ({"steps": 0}, "steps must be a whole number, at least 1; got 0"),
        ({"batch": -1}, "batch"),
        ({"learning_rate": math.nan}, "learning_rate must be a number greater than 0, and finite"),
        ({"betas": (0.9, 1.0)}, "betas"),
        ({"warmup": 7}, "0 to 6; got 7"),
        ({"schedule": "square"}, "schedule"),
        ({"stored": "int8"}, "stored must be one of float32, float16; got 'int8'"),
        ({"target": "soft"}, "target must be one of sampled, distribution; got 'soft'"),
        ({"init": "magic"}, "init must be one of"),
        ({"init": "harmonic", "max_period": 9}, "takes 27 of dim=8"),
        ({"length_schedule": ((3, 12),)}, "length_schedule"),
        ({"shorter": ((3, 5), (2, 6))}, "length_schedule is pairs"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed must be a whole number, at least 0; got True"),
        ({"warmup": True}, "warmup must be a whole number, at least 0; got True"),
        ({"steps": True}, "steps must be a whole number"),
        ({"lags": (True, 2)}, "lags.0 must be a whole number, at least 1; got True"),
        ({"lag_prior": (True, 0.5)}, "lag_prior.0 must be a number; got True"),
        ({"lags": (1,), "lag_prior": (True,)}, "lag_prior.0 must be a number; got True"),
        ({"learning_rate": True}, "learning_rate must be a number greater than 0"),
        ({"learning_rate": 2e30}, "learning_rate must be a number from 0 to 1e+30; got 2e+30"),
        ({"betas": (0.9, True)}, "betas.1 must be a number, at least 0; got True"),
        ({"concentration": True}, "concentration must be a number greater than 0"),
        ({"switch_rate": True}, "switch_rate must be a number; got True"),
        ({"length_schedule": ((True, 5),)}, "length_schedule.0.0 must be a whole number"),
        (
            {"init": "harmonic", "dim": 30, "frozen_steps": True},
            "frozen_steps must be a whole number, at least 0; got True",
        ),
        (
            {"init": "harmonic", "dim": 30, "held": 1, "frozen_steps": 1},
            "held is the old name of frozen_steps",
        ),
        (
            {"shorter": (), "length_schedule": ()},
            "shorter is the old name of length_schedule; leave one out",
        ),
        ({"recipe": Plain(), "init": "harmonic"}, "init is the word for a recipe"),
        ({"recipe": Plain(), "init": "uniform"}, "leave one out"),
        (
            {"matrix": ((0.5, 0.5), (0.5, 0.5)), "states": 2, "concentration": 2.0},
            "concentration is of a random matrix; leave it out, or matrix",
        ),
        ({"length": 2}, "above the largest lag"),
        ({"matrix": ((0.5, 0.5), (0.5, 0.5))}, "states=3 does not fit"),
        ({"concentration": -1.0}, "concentration"),
        ({"init": "harmonic", "dim": 30, "held": 7}, "frozen_steps is a number of steps, 0 to 6"),
        (
            {"init": "harmonic", "dim": 30, "heads": (2,), "held": 1},
            "is for models of two layers or more; got 1",
        ),
        ({"lag_prior": (0.5, 0.6)}, "lag_prior is one positive probability"),
        ({"optimiser": "sgd"}, "optimiser must be one of adam, soap; got 'sgd'"),
        ({"init": "small"}, "the recipe small is for disentangled; a standard model has"),
        (
            {"model": "disentangled", "init": "gpt2"},
            "the recipe gpt2 is for standard; a disentangled model has factors",
        ),
        ({"model": "disentangled", "dim": 8}, "no field 'dim'; it has batch, betas,"),
        ({"colour": 1}, "no field 'colour'"),
    ],
)
def test_bad_configurations_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        TrainConfig(**{**_fields(changes), **changes})
    assert isinstance(refused.value, FieldError)
    field = refused.value.field.partition(".")[0]
    assert field in {RENAMED.get(name, name) for name in changes} | {"states"}


@pytest.mark.parametrize(
    ("part", "given", "message"),
    [
        (
            "task",
            sih.Task,
            "task must be of type TaskConfig, e.g. TrainConfig(task=TaskConfig(lags=(1, 3), length=64)), or be given "
            "by its fields, e.g. TrainConfig(lags=(1, 3), length=64), or any task, "
            "e.g. TrainConfig(task=sih.Task(...)); got the class Task",
        ),
        ("task", (1, 2, 3), "or any task, e.g. TrainConfig(task=sih.Task("),
        ("task", None, "got None"),
        ("recipe", "harmonic", "by its fields, e.g. TrainConfig(init='harmonic'); got 'harmonic'"),
        ("evaluation", {"held_out": 3}, "e.g. TrainConfig(evaluate_every=100); got {'held_out': 3}"),
        ("model", sih.Transformer(2, 8, 4, 2), "e.g. TrainConfig(model='standard', dim=32); got a Transformer"),
        ("model", {"kind": "standard"}, "model must be of type ModelShape"),
        ("optimiser", Adam, "e.g. TrainConfig(optimiser='soap', steps=2000); got the class Adam"),
    ],
)  # fmt: skip
def test_a_part_of_a_wrong_type_is_refused(part: str, given: Any, message: str) -> None:
    """Each was dropped once, and the default configuration trained."""
    for make in (TrainConfig, SMALL.replace, preset_of("auto"), preset_of("paper")):
        with pytest.raises(FieldError) as refused:
            make(**{part: given})
        assert message in str(refused.value)
        assert refused.value.field == part


def preset_of(name: str) -> Any:
    return lambda **changes: preset(name, **changes)


@pytest.mark.parametrize("part", SECTIONS)
def test_the_examples_of_messages_are_right(part: str) -> None:
    names = {
        kind.__name__: kind
        for kind in (TaskConfig, TransformerShape, Adam, Plain, EvaluationConfig)
    }
    for words in (SECTIONS[part].flat, SECTIONS[part].whole):
        config = eval(f"TrainConfig({words})", {"TrainConfig": TrainConfig, **names})
        assert config != TrainConfig() or words == "recipe=Plain()"


@pytest.mark.parametrize(
    "given",
    [
        {"concentration": 1}, {"learning_rate": np.float64(1e-3)}, {"switch_rate": 0}, {"switch_rate": -0.0},
        {"betas": [0.9, 0.999]}, {"length_schedule": []},
    ],
    ids=str,
)  # fmt: skip
def test_equal_configurations_have_one_digest(given: dict[str, Any]) -> None:
    assert TrainConfig(**given) == TrainConfig()
    assert digest(TrainConfig(**given)) == digest(TrainConfig())


def test_a_task_that_is_given_is_the_task_that_is_trained() -> None:
    """Once it was dropped, and the default configuration trained."""
    parents = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], [[-1, 0, 1, 2], [-1, 0, 0, 1]])
    for task in (sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 16), parents):
        for make in (TrainConfig, SMALL.replace, preset_of("paper")):
            assert make(task=task).task.build() is task
        with pytest.raises(FieldError, match="no field 'lags'"):
            TrainConfig(task=task, lags=(1, 2))


def test_numbers_are_kept_in_one_form() -> None:
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"lags": (1,), "lag_prior": (1,)}, {"lags": (1,), "lag_prior": (1.0,)}),
        ({"betas": (-0.0, 0)}, {"betas": (0.0, 0.0)}),
        ({"learning_rate": 1}, {"learning_rate": 1.0}),
    ]
    for given, usual in pairs:
        assert small(**given) == small(**usual)
        assert digest(small(**given)) == digest(small(**usual))
    assert digest(small(learning_rate=1)) != digest(SMALL)


def test_a_part_given_whole_takes_the_place_of_its_words() -> None:
    harmonic = small(init="harmonic", dim=30, held=2)
    assert harmonic.replace(recipe=Plain()) == small(dim=30)
    assert harmonic.replace(held=3).flat()["frozen_steps"] == 3
    with pytest.raises(FieldError, match="init is the word for a recipe"):
        harmonic.replace(recipe=Plain(), init="uniform")


def _fields(changes: dict[str, Any]) -> dict[str, Any]:
    """The small configuration's fields, but for what another kind of model does not have."""
    return {
        name: value
        for name, value in SMALL.unusual().items()
        if name != "dim" or "model" not in changes
    }
