"""A recipe is a file; a law of matrices, an optimiser, a preset and a command are a few lines and a line in a table.

They are added to a copy of the package, which the command line then runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
RECIPE = '''
from dataclasses import dataclass

from sih.models.initial_weights import draw_normal
from sih.training.recipes.recipe import Parametrisation, Recipe


@dataclass(frozen=True)
class Tiny(Recipe):
    """Draws every weight with a standard deviation of 1e-6."""

    name = "tiny"

    def start(self, shape, task, rng, device):
        model = shape.build(task.num_states, task.length, init="zeros")
        for weight in model.parameters():
            draw_normal(weight, 1e-6, rng)
        return Parametrisation(model.to(device))
'''
MATRIX = """
def random_even(num_states, *, rng):
    return torch.full((num_states, num_states), 1 / num_states, dtype=torch.float64)


RANDOM["even"] = random_even
"""
OPTIMISER = '''
@dataclass(frozen=True)
class Descent(Optimiser):
    """Moves weights against the gradient."""

    name: ClassVar[str] = "descent"

    def make(self, weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(list(weights), lr=self.learning_rate)


OPTIMISERS["descent"] = Descent
'''
PRESET = '''
def quick(given: Fields) -> Fields:
    """Sets three steps."""
    return {"steps": 3}


PRESETS["quick"] = quick
'''
COMMAND = '''
def count(up_to: int = 3) -> None:
    """Count from 1.

    Args:
        up_to: The last number.
    """
    print(*range(1, up_to + 1))
'''
LINE = '    "Look": {\n        "count": ("sih.cli.count_command:count", "count from 1"),\n'


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a copy of the package, without its models, to which all is added."""
    copy: Path = tmp_path_factory.mktemp("package") / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("shipped", "__pycache__"))
    (copy / "sih/training/recipes/tiny.py").write_text(RECIPE)
    (copy / "sih/cli/count_command.py").write_text(COMMAND)
    added = {
        "task/matrices.py": MATRIX,
        "training/optimiser.py": OPTIMISER,
        "training/presets.py": PRESET,
    }
    for name, text in added.items():
        with (copy / "sih" / name).open("a") as file:
            file.write(text)
    commands = copy / "sih_command.py"
    commands.write_text(commands.read_text().replace('    "Look": {\n', LINE))
    return copy


def run(package: Path, *words: str) -> str:
    """Return what the command prints, run from the copy."""
    code = "import sih_command, sys; sys.argv[0] = 'sih'; sih_command.run()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_command_is_listed_explained_and_run(package: Path) -> None:
    assert "count from 1" in run(package, "--help")
    assert "The last number." in run(package, "help", "count")
    assert run(package, "count", "--up-to", "2") == "1 2\n"


def test_a_recipe_an_optimiser_a_preset_and_a_law_are_trained(package: Path) -> None:
    sizes = "--lags 1 2 --states 3 --length 8 --heads 1 1 --dim 4 --qk-dim 2 --batch 2 --held-out 2"
    chosen = "--preset quick --init tiny --optimiser descent --matrix-law even"
    run(package, "train", *sizes.split(), *chosen.split(), "--threads", "1", "--out", "run")
    config = json.loads((package / "run" / "config.json").read_text())
    assert config["recipe"]["name"] == "tiny"
    assert config["task"]["matrix_law"] == "even"
    assert (config["optimiser"]["name"], config["optimiser"]["steps"]) == ("descent", 3)
