from __future__ import annotations

from typing import Any

import pytest

import sih
from sih.base.errors import FieldError
from sih.models.disentangled.dense import DisentangledShape
from sih.models.standard.transformer import TransformerShape
from sih.training.config_parts import SECTIONS, classes_of, parts_of, shape_of, unfolded
from sih.training.optimiser import Adam, SoapConfig
from sih.training.recipes.plain import Plain
from sih.training.recipes.tied_tables import TiedTables
from sih.training.task_config import OwnTask, TaskConfig

TASK = sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 16)


def test_words_choose_classes_and_a_whole_part_brings_its_own() -> None:
    words = classes_of({"model": "disentangled", "init": "harmonic", "optimiser": "soap"})
    assert list(words) == list(SECTIONS)
    assert [words[part] for part in ("model", "optimiser", "recipe")] == [
        DisentangledShape,
        SoapConfig,
        TiedTables,
    ]
    whole = classes_of({"model": TransformerShape(), "recipe": Plain(), "optimiser": Adam()})
    assert (whole["model"], whole["recipe"], whole["optimiser"]) == (TransformerShape, Plain, Adam)
    assert shape_of({"init": "small"}) is TransformerShape  # whatever recipe it does not have


@pytest.mark.parametrize(
    ("fields", "base", "found"),
    [
        ({}, {"lags": (1, 3)}, {"lags": (1, 3)}),
        ({"lags": (2, 4)}, {"lags": (1, 3), "states": 4}, {"lags": (2, 4), "states": 4}),
        ({"task": TaskConfig(length=9)}, {"lags": (1, 3)}, {"lags": (1, 2, 3), "length": 9}),
        ({"task": TaskConfig(length=9), "states": 3}, {"lags": (1, 3)}, {"length": 9, "states": 3}),
    ],
    ids=str,
)
def test_a_base_counts_where_no_field_says_otherwise(
    fields: dict[str, Any], base: dict[str, Any], found: dict[str, Any]
) -> None:
    task = parts_of(fields, base)["task"]
    assert {name: getattr(task, name) for name in found} == found


def test_what_the_chosen_parts_lack_of_a_base_is_left_out_and_of_the_fields_refused() -> None:
    base = {"max_period": 3, "renew_every": 2, "dim": 32}
    parts = parts_of({"model": "disentangled", "init": "harmonic"}, base)
    assert parts["recipe"] == TiedTables(max_period=3)
    assert (parts["optimiser"], parts["model"]) == (Adam(), DisentangledShape())
    with pytest.raises(FieldError, match="no field 'max_period'; it has batch, betas"):
        parts_of({"max_period": 3}, base)


def test_fields_are_unfolded_once() -> None:
    found = unfolded({"held": 3, "task": TASK, "optimiser": "soap"})
    assert (found["frozen_steps"], found["optimiser"]) == (3, "soap")
    assert isinstance(found["task"], OwnTask)
    assert found["task"].build() is TASK
    assert unfolded(found) == found
    for fields, says in (
        ({"held": 1, "frozen_steps": 2}, "held is the old name of frozen_steps; leave one out"),
        ({"init": "normal", "recipe": Plain()}, "init is the word for a recipe"),
        ({"task": 3}, "task must be of type TaskConfig"),
        ({"model": OwnTask(found["task"].own)}, "model must be of type ModelShape"),
    ):
        with pytest.raises(FieldError, match=says):
            unfolded(fields)
