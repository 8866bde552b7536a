"""A recipe is a file: what all of them do, and that a new one takes nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.small_configs import small

from sih.cli import main
from sih.cli.train_command import command_of
from sih.training import recipes
from sih.training.config import TrainConfig
from sih.training.recipes import all_recipes, recipe_named
from sih.training.recipes.harmonic_positions import HarmonicPositions
from sih.training.recipes.plain import Plain
from sih.training.recipes.recipe import StagedRecipe
from sih.training.recipes.tied_tables import TiedTables
from sih.training.runs.run_store import open_run
from sih.training.trainer import Trainer


def test_recipes_are_found_by_name_and_kind() -> None:
    assert recipe_named("uniform", "standard") is recipe_named("uniform", "disentangled") is Plain
    assert recipe_named("harmonic", "standard") is HarmonicPositions
    assert recipe_named("harmonic", "disentangled") is TiedTables
    fitting = "factors, uniform, small, harmonic"
    with pytest.raises(ValueError, match=f"init must be one of {fitting}; got 'magic'"):
        recipe_named("magic", "disentangled")
    with pytest.raises(
        ValueError,
        match=f"the recipe normal is for standard, relative; a disentangled model has {fitting}$",
    ):
        recipe_named("normal", "disentangled")


def test_a_recipe_is_for_some_kinds() -> None:
    with pytest.raises(ValueError, match="the recipe harmonic is for standard; got disentangled"):
        TrainConfig(model="disentangled", recipe=HarmonicPositions())


def test_lengths_that_are_refused_are_told_which_are_allowed() -> None:
    wanted = r"a step \(rising, at most 9\) and a length \(3 to 11\)"
    for schedule in (((3, 2),), ((3, 12),)):  # max_lag, and the length of a sequence itself
        with pytest.raises(ValueError, match=wanted):
            small(lags=(1, 2), length=12, steps=9, length_schedule=schedule)
    assert (
        small(lags=(1, 2), length=12, steps=9, length_schedule=((3, 3), (9, 11))).recipe.length_at(
            8, 12
        )
        == 11
    )


def test_shorter_sequences_come_first() -> None:
    recipe = small(shorter=((2, 4), (4, 6))).recipe
    assert [recipe.length_at(n, 12) for n in range(6)] == [4, 4, 6, 6, 12, 12]


@pytest.mark.parametrize("kind", ["standard", "disentangled"])
def test_what_is_left_open_is_filled_in_from_steps_and_length(kind: str) -> None:
    fields: dict[str, Any] = {
        "model": kind,
        "init": "harmonic",
        "frozen_steps": None,
        "length_schedule": None,
    }
    filled = [TrainConfig(**fields, steps=600, length=length).recipe for length in (128, 50, 20)]
    lengths = [[length for _, length in recipe.length_schedule or ()] for recipe in filled]
    assert lengths == [[32, 64], [32], []]
    for recipe in filled:
        assert isinstance(recipe, StagedRecipe)
        assert recipe.frozen_steps == 150
    late = TrainConfig(**fields, steps=600, lags=(1, 40), heads=(1, 1, 1)).recipe
    assert [length for _, length in late.length_schedule or ()] == [64]


NEW = """
from dataclasses import dataclass
from typing import ClassVar

from sih.training.recipes.plain import Plain
from sih.training.recipes.recipe import Parametrisation


class LastLayerParametrisation(Parametrisation):
    def __init__(self, model, warm):
        super().__init__(model)
        self.warm = warm

    def collect_gradients(self, step):
        for name, weight in self.parameters.items():
            if step < self.warm and name != "readout":
                weight.grad = None


@dataclass(frozen=True)
class ReadoutFirst(Plain):
    name: ClassVar[str] = "readout-first"

    warm_steps: int = 2
    \"\"\"steps during which the readout alone moves.\"\"\"

    def start(self, shape, task, rng, device):
        model = shape.build(task.num_states, task.length, init="uniform", rng=rng)
        return LastLayerParametrisation(model.to(device), self.warm_steps)
""".replace('\\"', '"')


def test_a_new_recipe_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "readout_first.py").write_text(NEW)
    monkeypatch.setattr(recipes, "__path__", [*recipes.__path__, str(tmp_path)])
    assert "readout-first" in [recipe.name for recipe in all_recipes()]
    trainer = Trainer(small(init="readout-first", warm_steps=1))
    begin = trainer.state()
    trainer.advance()
    assert torch.equal(begin["model/token"], trainer.state()["model/token"])
    assert not torch.equal(begin["model/readout"], trainer.state()["model/readout"])
    words = command_of(small(init="readout-first", warm_steps=1)).split()[1:]
    assert main([*words, "--threads", "1", "--out", str(tmp_path / "run")]) == 0
    run = open_run(tmp_path / "run")
    assert run.finished
    assert run.config.unusual()["init"] == "readout-first"
    assert run.config.flat()["warm_steps"] == 1
    capsys.readouterr()
    assert main(["train", "--init", "readout-first", "--help"]) == 0
    assert "steps during which the readout alone moves" in capsys.readouterr().out
