"""The evaluation of a model: mean KL with standard errors, and its file.

`evaluation.json` has the SHA-256 of its weights. Beside other weights, or in another
version, it is not read.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sih.base.files import check_entries, read_json, reading, write_json
from sih.base.showing import Shown, Words
from sih.base.stats import Estimate

EVALUATION = "evaluation.json"
VERSION = 2
"""Changes whenever the same weights would get other numbers."""
DIGITS = 6
MEASURED = ("kl", "ml", "bma", "alike", "kl_over_ml", "way")
FOUND, FOUND_FROM = 0.9, 17
"""Least `way` of a model that has found the circuit, in every window from this number
of tokens."""


@dataclass(frozen=True, eq=False)
class Measured(Shown):
    """Means over some positions, with errors: KL of the model, of ML and of BMA.

    Args:
        kl: the model's mean KL to the true distribution of the next token, in nats.
        ml: that of maximum likelihood.
        bma: that of Bayesian model averaging, the smallest possible.
        alike: that of equal weights: the mean of the distributions of the next token
            under all lags.
        kl_over_ml: the first divided by the second, with the error of a ratio of means
            on the same sequences.
        way: the progress from equal weights (0) to maximum likelihood (1), (alike - kl)
            / (alike - ml), with the error of such a ratio. It is nan where ML is no
            better than equal weights, as over the first tokens of some tasks, and with
            one lag.
    """

    kl: Estimate[float]
    ml: Estimate[float]
    bma: Estimate[float]
    alike: Estimate[float]
    kl_over_ml: Estimate[float]
    way: Estimate[float]

    def _facts(self) -> Mapping[str, Any]:
        return {name: Words(getattr(self, name).with_error()) for name in MEASURED if name != "way"}


@dataclass(frozen=True, eq=False)
class Window(Measured):
    """The same over the positions with `first` to `last` tokens seen."""

    first: int
    last: int

    @property
    def label(self) -> str:
        """Return its first and last number of tokens, e.g. 17-32."""
        return f"{self.first}-{self.last}"

    @property
    def late(self) -> bool:
        """Return whether it is a window from 17 tokens on, used for the verdict."""
        return self.first >= FOUND_FROM

    def _facts(self) -> Mapping[str, Any]:
        way = {"way": Words(self.way.with_error())} if self.late else {}
        return {"tokens": self.label, **super()._facts(), **way}


@dataclass(frozen=True, eq=False)
class RunEvaluation(Measured):
    """The same over all positions from max_lag on with a next token, and by window.

    Displayed intervals are two standard errors either way.
    """

    windows: tuple[Window, ...]
    sequences: int

    @property
    def ways(self) -> dict[str, Estimate[float]]:
        """Return `way` by the window's label, from 17 tokens on.

        Lengths below 18 have none.
        """
        return {window.label: window.way for window in self.windows if window.late}

    @property
    def found(self) -> bool:
        """Return whether the circuit is found.

        `way` must be at least 0.9 in every window from 17 tokens on.
        """
        return has_found(self.ways)

    @property
    def verdict(self) -> str:
        """Return `ways` and `found` in words."""
        if not self.ways:
            return f"length too short to tell whether the circuit is found (by {FOUND_FROM} tokens seen and more)"
        return f"way by tokens seen {ways_in_words(self.ways)}: the circuit is {'' if self.found else 'not '}found"

    def _facts(self) -> Mapping[str, Any]:
        windows = {
            "windows": Words(self._ratios()),
            "ways": Words(f"{{{ways_in_words(self.ways)}}}"),
        }
        return {**super()._facts(), **windows, "found": self.found, "sequences": self.sequences}

    def _ratios(self) -> str:
        return f"{{{', '.join(f'{each.label}: {each.kl_over_ml.with_error()}' for each in self.windows)}}}"


def has_found(ways: Mapping[str, Estimate[float]]) -> bool:
    """Return whether there is a window and all have at least 0.9."""
    return bool(ways) and all(way.mean >= FOUND for way in ways.values())


def ways_in_words(ways: Mapping[str, Estimate[float]]) -> str:
    """Return ways by window in words, e.g. "17-32: 0.95, 33-64: 0.97"."""
    return ", ".join(f"{label}: {way.mean:.2f}" for label, way in ways.items())


def digest_of_weights(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with reading(path, "holds no weights"):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def write_evaluation(folder: Path, found: RunEvaluation, weights: str) -> None:
    """Write an evaluation of the weights with this SHA-256 into a run's folder."""
    windows = [
        {"tokens": [window.first, window.last], **_plain(window)} for window in found.windows
    ]
    of = {"version": VERSION, "weights": weights, "sequences": found.sequences}
    write_json(folder / EVALUATION, {**of, **_plain(found), "windows": windows}, indent=1)


def read_evaluation(folder: Path, weights: str) -> RunEvaluation | None:
    """Return the evaluation of the weights with this SHA-256, or None."""
    path = folder / EVALUATION
    if not path.exists():
        return None
    with reading(path, "is no evaluation"):
        values = read_json(path)
        check_entries(values, {"version": int, "weights": str}, ("version", "weights"))
        if (values["version"], values["weights"]) != (VERSION, weights):
            return None
        check_entries(values, {"sequences": int, "windows": list}, ("sequences", "windows"))
        windows = tuple(_window(each) for each in values["windows"])
        return RunEvaluation(**_estimates(values), windows=windows, sequences=values["sequences"])


def _plain(found: Measured) -> dict[str, list[float | None]]:
    return {name: plain_pair(getattr(found, name)) for name in MEASURED}


def plain_pair(found: Estimate[float]) -> list[float | None]:
    """Return a mean and its error in the form of files, with None for nan."""
    return [None if math.isnan(number) else rounded(number) for number in found.pair()]


def rounded(number: float) -> float:
    """Return a number with the digits that files keep of it."""
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else number


def read_pair(name: str, pair: Any) -> Estimate[float]:
    """Return the estimate in the form of `plain_pair`, or raise a ValueError."""
    if (
        not isinstance(pair, list)
        or len(pair) != 2
        or not all(isinstance(n, int | float | None) for n in pair)
    ):
        raise ValueError(
            f"{name} is a mean and its standard error, e.g. [0.93, 0.01]; got {pair!r:.60}"
        )
    mean, error = (math.nan if number is None else float(number) for number in pair)
    return Estimate(mean, error)


def _window(values: Any) -> Window:
    check_entries(values, {"tokens": list}, ("tokens",))
    first, last = values["tokens"]
    return Window(**_estimates(values), first=first, last=last)


def _estimates(values: dict[str, Any]) -> dict[str, Estimate[float]]:
    check_entries(values, dict.fromkeys(MEASURED, list), MEASURED)
    return {name: read_pair(name, values[name]) for name in MEASURED}
