"""Training as in the paper, from weights of a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sih.training.recipes.plain import Plain


@dataclass(frozen=True)
class NormalWeights(Plain):
    """Draws every weight from a normal distribution, with variance one over its inputs."""

    name: ClassVar[str] = "normal"
    kinds: ClassVar[tuple[str, ...]] = ("standard",)
