"""The limits of strengths: masks, inverse temperatures, exponents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

LARGEST = 1e15
"""Beyond this, float64 has no digits left for the scores."""


@dataclass(frozen=True)
class Strong:
    """The positive numbers up to `most`, with infinity if it stands for the limit."""

    most: float = LARGEST
    infinite: bool = False

    def __contains__(self, value: float) -> bool:
        return 0 < value <= self.most or (self.infinite and value == float("inf"))

    def wanted(self, noun: str) -> str:
        end = ", or inf for the limit" if self.infinite else ""
        return f"{noun} greater than 0, at most {self.most:g}{end}"


Strength = Annotated[float, Strong()]
OrInfinite = Annotated[float, Strong(infinite=True)]
