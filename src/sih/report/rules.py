"""Judges statements: a verdict follows from a number and its interval by a rule that is printed with it."""

import operator
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, TypeVar

from sih import stats
from sih.experiments.experiment import Experiment

Verdict = Literal["holds", "holds with a remark", "does not hold", "unsettled", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with a remark", "does not hold", "unsettled", "not measured")
Interval = tuple[float, float]
D = TypeVar("D")
E = TypeVar("E")


class NotMeasuredError(Exception):
    """Says why there is no number."""


@dataclass(frozen=True)
class Measured:
    """Holds a number with its interval, None where it is exact, or one draw.

    `parts` are the numbers that it was chosen from, `models` the trained models behind it. `unsettled` says why it is
    not the last word, "at 2,000 steps" say, of a run that still gets better.
    """

    value: float
    interval: Interval | None = None
    label: str = ""
    parts: tuple["Measured", ...] = ()
    models: tuple[str, ...] = ()
    unsettled: str = ""


@dataclass(frozen=True)
class Rule:
    """Judges a number: it should be at most, or at least, `limit`; up to `slack` it is said with a remark."""

    sense: Literal["at most", "at least"]
    limit: float
    slack: float

    def verdict(self, measured: float, interval: Interval | None = None) -> Verdict:
        """Judge a number by the whole of its interval.

        >>> Rule("at most", 1.1, 1.25).verdict(1.08, (1.06, 1.12))
        'holds with a remark'
        """
        low, high = interval or (measured, measured)
        right, worst = (operator.le, high) if self.sense == "at most" else (operator.ge, low)
        if right(worst, self.limit):
            return "holds"
        return "holds with a remark" if right(measured, self.slack) else "does not hold"

    def worst(self, each: list[Measured]) -> Measured:
        """Choose the number that speaks most against the statement; its parts are all of them."""
        pick = max if self.sense == "at most" else min
        chosen = pick(each, key=lambda one: one.value)
        return replace(chosen, parts=tuple(each), models=_models(each))

    def __str__(self) -> str:
        remark = f"with a remark if the number is {self.sense} {self.slack:g}; otherwise it does not hold"
        return f"holds if the whole interval is {self.sense} {self.limit:g}; {remark}"


BEYOND = "beyond the paper"
"""The section of statements that are ours."""
MATCH = Rule("at most", 1.10, 1.25)
"""Two KL divergences match if one is at most a tenth above the other; up to a quarter with a remark."""


@dataclass(frozen=True)
class Statement(Generic[D]):
    """Says one thing that the paper states (or we do, `section` says), and how it is measured and judged.

    `measure` takes the data of `experiment` and gives a number, or several, of which the one that speaks most against
    the statement counts. `unit` goes with the number where there is no room for `quantity`; `remark` is said with every
    verdict but "holds".
    """

    id: str
    section: str
    text: str
    experiment: Experiment[Any, D]
    measure: Callable[[D], Measured | list[Measured]] = field(repr=False)
    rule: Rule
    unit: str
    quantity: str
    remark: str = ""

    @property
    def command(self) -> str:
        return f"sih figure {self.experiment.name} --out out"

    def judge(self, data: D) -> "Finding":
        """Measure the statement on its experiment's data, and judge the number by its rule."""
        try:
            found = self.measure(data)
        except NotMeasuredError as reason:
            return Finding(self, "not measured", None, str(reason))
        if isinstance(found, list):
            found = self.rule.worst(found)
        verdict = self.rule.verdict(found.value, found.interval)
        if verdict == "does not hold" and found.unsettled:
            return Finding(self, "unsettled", found, f"Unsettled {found.unsettled}. {self.remark}".strip())
        return Finding(self, verdict, found, "" if verdict == "holds" else self.remark)


@dataclass(frozen=True)
class Finding:
    """Holds a statement with its verdict and the number behind it, None where it was not measured."""

    statement: Statement[Any]
    verdict: Verdict
    measured: Measured | None
    remark: str

    def to_dict(self) -> dict[str, Any]:
        """Give the entry of report.json."""
        asked, found = self.statement, self.measured
        return {
            "id": asked.id,
            "section": asked.section,
            "statement": asked.text,
            "measured": found and found.value,
            "interval": found and found.interval and list(found.interval),
            "verdict": self.verdict,
            "command": asked.command,
            "unit": asked.unit,
            "quantity": asked.quantity,
            "rule": str(asked.rule),
            "remark": self.remark,
            "models": list(found.models) if found else [],
            "parts": [
                {"of": part.label, "measured": part.value, "interval": part.interval and list(part.interval)}
                for part in (found.parts if found else ())
            ],
        }


def require(found: list[E], reason: str) -> list[E]:
    """Give what was found, or raise a NotMeasuredError with the reason if nothing was."""
    if not found:
        raise NotMeasuredError(reason)
    return found


def median_and_range(found: Iterable[Measured]) -> Measured:
    """Give the median of several, with their range as its interval: a rule then asks it of every one of them."""
    each = sorted(found, key=lambda one: one.value)
    values = [one.value for one in each]
    open_ended = next((one.unsettled for one in each if one.unsettled), "")
    return Measured(statistics.median(values), (values[0], values[-1]), "", tuple(each), _models(each), open_ended)


def ratio(reference: float, difference: tuple[float, float], label: str, models: tuple[str, ...] = ()) -> Measured:
    """Say how many times the reference something is, from its paired difference and the error: two errors either way.

    >>> ratio(0.02, (0.001, 0.0005), "").value
    1.05
    """
    found = stats.ratio(stats.Estimate(*difference), reference)
    return Measured(found.mean, found.interval(), label, models=models)


def _models(each: Iterable[Measured]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in each for name in one.models))
