from __future__ import annotations

import pytest
from support.small_runs import SHORT

from sih.base.errors import FieldError
from sih.training.config import TrainConfig
from sih.training.config_file import from_json, to_json
from sih.training.presets import preset
from sih.training.recipes import Recipe, all_recipes
from sih.training.runs.run_names import PAPER, named, run_name
from sih.training.runs.run_store import SHIPPED, RunStore, open_run


def test_a_name_says_the_content() -> None:
    assert run_name(SHORT).startswith("standard-1.2-heads-1.2-")
    assert run_name(SHORT) == run_name(from_json(to_json(SHORT)))
    assert run_name(SHORT) != run_name(SHORT.replace(seed=1))


@pytest.mark.parametrize("name", RunStore().names())
def test_shipped_models_are_what_their_names_say(name: str) -> None:
    if name.startswith("disentangled"):
        assert named(name).heads == open_run(SHIPPED / name).config.heads
    else:
        assert named(name) == open_run(SHIPPED / name).config


@pytest.mark.parametrize(
    "name",
    ["standard", "standard-", "standard-1.2-x", "mlp-1.2", "standard-1..2", "standard-3.1.2"],
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"like standard-1\.2\.3|increasing"):
        named(name)


def test_a_name_may_ask_for_a_length() -> None:
    config = named("paper-1.3.4-length64")
    assert (config.task.lags, config.task.length, config.heads, config.recipe.name) == (
        (1, 3, 4),
        64,
        (1, 4, 1),
        "uniform",
    )
    config = named("disentangled-1.3-1.1.1-length40-seed2")
    assert (config.task.length, config.seed, config.recipe.length_schedule) == (40, 2, ((640, 32),))
    config = named("paper-disentangled-1.3.4-length32")
    assert (config.model.kind, config.task.lags, config.recipe.name) == (
        "disentangled",
        (1, 3, 4),
        "uniform",
    )
    assert named("standard-1.2.3-dim32-length64").flat()["dim"] == 32
    config = named("standard-1.2.3-states3-matrix4")
    assert (config.task.states, config.task.matrix_seed, config.heads) == (3, 4, (1, 3, 1))


def test_a_name_says_the_matrix_and_the_recipe() -> None:
    changes = {"lags": (1, 2, 3), "heads": (1, 1, 1), "length": 64, "seed": 1}
    expected = preset("paper", **changes, matrix_law="uniform", matrix_seed=11, init="normal")
    assert named("paper-1.2.3-1.1.1-length64-uniform11-normal-seed1") == expected
    assert named("paper-1.2.3-1.1.1-length64-matrix3-seed1") == preset(
        "paper", **changes, matrix_seed=3
    )
    assert named("standard-1.3-sparse0").task.matrix_law == "sparse"
    assert named("disentangled-1.3-1.1.1-near-periodic7").task.matrix_seed == 7
    assert named("paper-1.2.3-uniform") == named(
        "paper-1.2.3-length128"
    )  # the recipe of this name, not the law


@pytest.mark.parametrize(
    "recipe", [recipe for recipe in all_recipes() if recipe.name != "harmonic"]
)
def test_every_recipe_has_a_place_in_a_name(recipe: type[Recipe]) -> None:
    kind = "disentangled" if recipe.kinds == ("disentangled",) else "standard"
    paper = {kind: name for name, kind in PAPER.items()}[kind]
    assert named(f"{paper}-1.3-1.1.1-matrix3-{recipe.name}-seed2").recipe.name == recipe.name


def test_a_soft_run_learns_from_the_distribution() -> None:
    name = "paper-1.2.3-1.1.1-uniform11-normal-soft-seed1"
    if "target" in TrainConfig().flat():
        assert named(name).flat()["target"] == "distribution"
    else:
        with pytest.raises(FieldError, match="no field 'target'"):
            named(name)


@pytest.mark.parametrize(
    "name",
    [
        "paper-1.2.3-uniform11-length64", "paper-1.2.3-normal-uniform11", "paper-1.2.3-soft-normal",
        "paper-1.2.3-seed1-soft", "paper-1.2.3-dirichlet3", "paper-1.2.3-matrix", "paper-1.2.3-normal-uniform",
    ],
)  # fmt: skip
def test_parts_of_a_name_have_one_order(name: str) -> None:
    with pytest.raises(ValueError, match=r"like standard-1\.2\.3"):
        named(name)


def test_what_is_not_the_papers_setting_is_trained_by_auto() -> None:
    asked = {
        "lags": (2, 3, 4),
        "heads": (1, 2, 1),
        "model": "disentangled",
        "seed": 3,
        "evaluate_every": 100,
    }
    assert named("disentangled-2.3.4-1.2.1-seed3") == preset("auto", **asked)
    assert named("standard-1.5").optimiser.name == "soap"
