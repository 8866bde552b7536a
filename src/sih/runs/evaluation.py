"""How good a model is, measured once: mean KL with standard errors, and the file beside the weights that keeps it.

`evaluation.json` holds the SHA-256 of its weights. Beside other weights, or of another version, it is not read.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sih.files import check_entries, read_json, reading, write_json
from sih.showing import Shown, Words
from sih.stats import Estimate

EVALUATION = "evaluation.json"
VERSION = 1
"""Changes whenever the same weights would get other numbers."""
DIGITS = 6
MEASURED = ("kl", "ml", "bma", "kl_over_ml")


@dataclass(frozen=True, eq=False)
class Measured(Shown):
    """Means over some positions, each with its standard error: KL of the model, of maximum likelihood and of BMA.

    Args:
        kl: the model's mean KL to the true distribution of the next token, in nats.
        ml: that of maximum likelihood.
        bma: that of Bayesian model averaging, the smallest possible.
        kl_over_ml: the first divided by the second, with the error of a ratio of means on the same sequences.
    """

    kl: Estimate[float]
    ml: Estimate[float]
    bma: Estimate[float]
    kl_over_ml: Estimate[float]

    def _facts(self) -> Mapping[str, Any]:
        return {name: Words(getattr(self, name).with_error()) for name in MEASURED}


@dataclass(frozen=True, eq=False)
class Window(Measured):
    """The same over the positions where between `first` and `last` tokens have been seen."""

    first: int
    last: int

    @property
    def label(self) -> str:
        """Return its first and last number of tokens, e.g. 17-32."""
        return f"{self.first}-{self.last}"

    def _facts(self) -> Mapping[str, Any]:
        return {"tokens": self.label, **super()._facts()}


@dataclass(frozen=True, eq=False)
class RunEvaluation(Measured):
    """The same over all positions past the first max_lag that have a next token, and by window.

    Intervals that are shown are two standard errors either way.
    """

    windows: tuple[Window, ...]
    sequences: int

    def _facts(self) -> Mapping[str, Any]:
        return {**super()._facts(), "windows": Words(self._ratios()), "sequences": self.sequences}

    def _ratios(self) -> str:
        return ", ".join(f"{window.label}: {window.kl_over_ml.mean:.3g} x ML" for window in self.windows)


def digest_of_weights(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with reading(path, "holds no weights"):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def write_evaluation(folder: Path, found: RunEvaluation, weights: str) -> None:
    """Write an evaluation of the weights with this SHA-256 into a run's folder."""
    windows = [{"tokens": [window.first, window.last], **_plain(window)} for window in found.windows]
    of = {"version": VERSION, "weights": weights, "sequences": found.sequences}
    write_json(folder / EVALUATION, {**of, **_plain(found), "windows": windows}, indent=1)


def read_evaluation(folder: Path, weights: str) -> RunEvaluation | None:
    """Return the evaluation in a run's folder if it is of the weights with this SHA-256, or None."""
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


def _plain(found: Measured) -> dict[str, list[float]]:
    return {name: [_rounded(number) for number in getattr(found, name).pair()] for name in MEASURED}


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}") if math.isfinite(number) else number


def _window(values: Any) -> Window:
    check_entries(values, {"tokens": list}, ("tokens",))
    first, last = values["tokens"]
    return Window(**_estimates(values), first=first, last=last)


def _estimates(values: dict[str, Any]) -> dict[str, Estimate[float]]:
    check_entries(values, dict.fromkeys(MEASURED, list), MEASURED)
    pairs = {name: values[name] for name in MEASURED}
    if not all(len(pair) == 2 and all(isinstance(each, int | float) for each in pair) for pair in pairs.values()):
        raise ValueError(f"{', '.join(MEASURED)} are each a mean and its standard error")
    return {name: Estimate(float(mean), float(error)) for name, (mean, error) in pairs.items()}
