from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from sih.base.errors import FieldError
from sih.models.disentangled.dense import DisentangledShape
from sih.models.standard.transformer import TransformerShape
from sih.training.optimiser import Adam, SoapConfig
from sih.training.presets import PRESETS, preset
from sih.training.recipes.harmonic_positions import HarmonicPositions
from sih.training.recipes.plain import Plain
from sih.training.recipes.recipe import StagedRecipe
from sih.training.task_config import TaskConfig


def test_the_defaults_are_the_papers() -> None:
    config = preset("paper")
    assert (config.task.length, config.task.states) == (128, 5)
    assert config.optimiser == Adam(10_000, 256, 1e-3, "constant", 0, (0.9, 0.999))
    assert config.model == TransformerShape(heads=(1, 3, 1), dim=64, qk_dim=32)
    assert preset("paper-disentangled").model.build(5, 128).config.temperature == math.sqrt(32)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_takes_what_it_is_given(name: str) -> None:
    config = preset(name, lags=(1, 3), steps=17, seed=5)
    assert (config.task.lags, config.optimiser.steps, config.seed) == ((1, 3), 17, 5)


def test_an_unknown_preset_is_answered_with_the_names() -> None:
    with pytest.raises(
        ValueError,
        match="preset must be one of paper, paper-disentangled, paper-relative, harmonic, auto; got 'papr'",
    ):
        preset("papr")


def test_the_harmonic_recipe_fits_either_model() -> None:
    for model in ("standard", "disentangled"):
        config = preset("harmonic", model=model)
        recipe = config.recipe
        assert isinstance(recipe, StagedRecipe)
        assert (config.model.kind, recipe.name, config.task.length) == (model, "harmonic", 128)
        (first, short), (second, longer) = recipe.length_schedule or ()
        assert (short, longer) == (32, 64)
        assert 0 < (recipe.frozen_steps or 0) < first < second < config.optimiser.steps
        assert preset("harmonic", model=model, length=32, steps=3).recipe.length_schedule == ()


def test_auto_is_the_harmonic_recipe_moved_by_soap() -> None:
    for model, steps, batch, rate in (
        ("standard", 2000, 128, 1e-2),
        ("disentangled", 1600, 64, 5e-2),
    ):
        ours, harmonic = preset("auto", model=model), preset("harmonic", model=model, steps=steps)
        assert (ours.optimiser.name, ours.optimiser.steps, ours.optimiser.batch) == (
            "soap",
            steps,
            batch,
        )
        assert (ours.flat()["betas"], ours.optimiser.learning_rate) == ((0.95, 0.95), rate)
        own: dict[str, Any] = {"frozen_steps": 0, "parts_steps": 600} if model == "standard" else {}
        assert ours.recipe == dataclasses.replace(harmonic.recipe, **own)
        assert (ours.task, ours.model) == (preset("paper").task, harmonic.model)


def test_auto_takes_another_optimiser() -> None:
    assert preset("auto", optimiser="adam", batch=64).optimiser == Adam(
        2000, 64, 1e-2, "cosine", 50, (0.95, 0.95)
    )


def test_a_part_given_whole_wins_over_a_preset() -> None:
    assert preset("auto", optimiser=Adam(steps=7)).optimiser == Adam(steps=7)
    assert preset("auto", optimiser=Adam(steps=7), batch=3).optimiser == Adam(steps=7, batch=3)
    assert preset("auto", optimiser=SoapConfig(steps=7)).optimiser == SoapConfig(steps=7)
    assert preset("auto", optimiser=Adam(steps=7)).recipe == preset("auto", steps=7).recipe
    plain = preset("harmonic", recipe=Plain())
    assert (plain.recipe, plain.optimiser) == (Plain(), preset("harmonic").optimiser)
    staged = HarmonicPositions(max_period=4)
    assert preset("auto", recipe=staged).recipe == staged
    for shape in (TransformerShape(dim=32), DisentangledShape(heads=(1, 2, 1))):
        for name in ("harmonic", "auto"):
            whole, by_word = preset(name, model=shape), preset(name, model=shape.kind)
            assert whole.model == shape
            assert (whole.optimiser, whole.recipe) == (by_word.optimiser, by_word.recipe)


def test_a_preset_leaves_the_law_of_the_matrix_to_a_task_that_is_given() -> None:
    assert preset("paper-relative").task == TaskConfig(matrix_law="uniform")
    for task in (TaskConfig(states=3), TaskConfig(matrix_law="sparse"), TaskConfig(fresh=True)):
        assert preset("paper-relative", task=task).task == task
        assert preset("paper-relative", task=task, length=64).task == dataclasses.replace(
            task, length=64
        )
    matrix = ((0.5, 0.5), (0.25, 0.75))
    assert preset("paper-relative", matrix=matrix, states=2).task == TaskConfig(
        matrix=matrix, states=2
    )
    assert preset("paper-relative", fresh=True).task == TaskConfig(fresh=True)
    assert preset("paper-relative", fresh=False) == preset("paper-relative")


def test_a_preset_takes_a_field_by_its_old_name() -> None:
    assert preset("harmonic", held=3) == preset("harmonic", frozen_steps=3)
    with pytest.raises(FieldError, match="held is the old name of frozen_steps; leave one out"):
        preset("harmonic", held=3, frozen_steps=3)


def test_auto_takes_another_recipe() -> None:
    config = preset("auto", init="uniform", steps=100)
    assert (config.recipe.name, config.optimiser.name) == ("uniform", "soap")
    assert config.recipe.length_schedule == preset("auto", steps=100).recipe.length_schedule


def test_a_preset_without_its_recipe_keeps_the_rest() -> None:
    config = preset("harmonic", init="uniform")
    assert config.recipe.name == "uniform"
    assert config.recipe.length_schedule == preset("harmonic").recipe.length_schedule
    assert config.optimiser == preset("harmonic").optimiser
