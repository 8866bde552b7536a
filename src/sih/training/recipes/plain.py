"""Training as in the paper: weights drawn at random, all of them moved from the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from sih.models import ModelShape
from sih.task import Task
from sih.training.recipes.recipe import Recipe, Start


@dataclass(frozen=True)
class Plain(Recipe):
    """Draws every weight uniformly, up to one over the root of its inputs."""

    name: ClassVar[str] = "uniform"

    def start(self, shape: ModelShape, task: Task, rng: torch.Generator, device: torch.device) -> Start:
        return Start(shape.build(task.num_states, task.length, init=self.name, rng=rng).to(device))
