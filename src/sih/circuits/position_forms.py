r"""Scores of pairs of positions as sums of products of a few functions: 1, x, x^2 and
waves.

A wave of the difference of two positions is two products, $\cos\omega(a - b) =
\cos\omega a \cos\omega b + \sin\omega a \sin\omega b$, and any function of
$(a - b) \bmod M$ is a sum of M - 1 of them and a constant.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import torch
from jaxtyping import Float
from torch import Tensor

Feature = tuple[str, Fraction | float]
"""A function of a position: ("power", n) of x centred, or ("cos", t) and ("sin", t) of
a wave with t turns per step."""
ONE, X, XX = (("power", Fraction(n)) for n in range(3))


def column(feature: Feature, length: int) -> Float[Tensor, " length"]:
    """Return a feature at every position; waves with a rational number of turns are
    exactly periodic.
    """
    name, number = feature
    x = torch.arange(length)
    if name == "power":
        return (x - length // 2).to(torch.float64) ** int(number)
    if isinstance(number, Fraction):
        turns = (x * number.numerator % number.denominator).to(torch.float64) / number.denominator
    else:
        turns = x.to(torch.float64) * number % 1.0
    return torch.cos(2 * math.pi * turns) if name == "cos" else torch.sin(2 * math.pi * turns)


class Form:
    """A sum of products of a feature of position a and a feature of position b."""

    def __init__(self) -> None:
        self.terms: dict[tuple[Feature, Feature], float] = {}

    def add(self, first: Feature, second: Feature, value: float) -> None:
        self.terms[first, second] = self.terms.get((first, second), 0.0) + value

    def wave(self, turn: Fraction | float, amplitude: float, phase: float) -> None:
        r"""Add the term $A \cos(2\pi\,\mathrm{turn}\,(a - b) + \varphi)$ to the form."""
        along, across = amplitude * math.cos(phase), amplitude * math.sin(phase)
        cos, sin = ("cos", turn), ("sin", turn)
        self.add(cos, cos, along)
        if turn != Fraction(1, 2):  # for which the sine is 0
            self.add(sin, sin, along)
            self.add(sin, cos, -across)
            self.add(cos, sin, across)

    def periodic(self, values: Sequence[float], shift: int) -> None:
        """Add values[(a - b + shift) mod n], with n the number of values."""
        count = len(values)
        parts = torch.fft.fft(torch.tensor(values, dtype=torch.float64)) / count
        self.add(ONE, ONE, parts[0].real.item())
        for r in range(1, count // 2 + 1):
            turn, part = Fraction(r, count), complex(parts[r].item())
            twice = 1 if 2 * r == count else 2
            phase = math.atan2(part.imag, part.real) + 2 * math.pi * (r * shift % count) / count
            self.wave(turn, twice * abs(part), phase)

    def parabola(self, strength: float, shift: float) -> None:
        """Subtract strength (a - b + shift)^2."""
        self.add(ONE, XX, -strength)
        self.add(X, X, 2 * strength)
        self.add(ONE, X, 2 * strength * shift)
        self.add(XX, ONE, -strength)
        self.add(X, ONE, -2 * strength * shift)
        self.add(ONE, ONE, -strength * shift**2)

    def values(
        self, columns: dict[Feature, Float[Tensor, " length"]]
    ) -> Float[Tensor, "length length"]:
        """Return the form at every pair of positions."""
        zero = torch.zeros(len(columns[ONE]), len(columns[ONE]), dtype=torch.float64)
        return sum(
            (value * torch.outer(columns[a], columns[b]) for (a, b), value in self.terms.items()),
            zero,
        )
