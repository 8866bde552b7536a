"""What is judged, and how: a verdict follows from a number and its interval by a rule that is printed with it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["holds", "holds with a remark", "does not hold", "not measured"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with a remark", "does not hold", "not measured")
Interval = tuple[float, float]


class NotMeasuredError(Exception):
    """There is no number, and why."""


@dataclass(frozen=True)
class Rule:
    """The number should be at most, or at least, `limit`; up to `slack` it is said with a remark."""

    sense: Literal["at most", "at least"]
    limit: float
    slack: float

    def verdict(self, measured: float, interval: Interval | None = None) -> Verdict:
        """
        >>> Rule("at most", 1.1, 1.25).verdict(1.08, (1.06, 1.12))
        'holds with a remark'
        """
        low, high = interval or (measured, measured)
        if self._right(high if self.sense == "at most" else low, self.limit):
            return "holds"
        return "holds with a remark" if self._right(measured, self.slack) else "does not hold"

    def _right(self, value: float, limit: float) -> bool:
        return value <= limit if self.sense == "at most" else value >= limit

    def __str__(self) -> str:
        return (
            f"holds if the whole interval is {self.sense} {self.limit:g}; "
            f"with a remark if the number is {self.sense} {self.slack:g}; otherwise it does not hold"
        )

    def typical(self, found: Iterable[Measured]) -> Measured:
        """The median of several, its interval their range: the statement holds if it does for every one of them."""
        each = sorted(found, key=lambda one: one.value)
        values = [one.value for one in each]
        models = tuple(dict.fromkeys(name for one in each for name in one.models))
        return Measured(statistics.median(values), (values[0], values[-1]), parts=tuple(each), models=models)

    def worst(self, found: Iterable[Measured]) -> Measured:
        """The one of several that speaks most against the statement; its parts are all of them."""
        each = list(found)
        pick = max if self.sense == "at most" else min
        chosen = pick(each, key=lambda one: one.value)
        models = tuple(dict.fromkeys(name for one in each for name in one.models))
        return Measured(chosen.value, chosen.interval, chosen.label, tuple(each), models)


@dataclass(frozen=True)
class Measured:
    """A number with its interval (None where it is exact, or one draw); `parts` are the numbers it was chosen from."""

    value: float
    interval: Interval | None = None
    label: str = ""
    parts: tuple[Measured, ...] = ()
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class Statement:
    """One statement of the paper (or of ours, `section` says), judged."""

    id: str
    section: str
    statement: str
    measured: float | None
    interval: Interval | None
    verdict: Verdict
    command: str
    unit: str
    quantity: str
    rule: str
    remark: str
    figure: str
    models: tuple[str, ...] = ()
    where: str = ""
    parts: tuple[Measured, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        parts = [{"of": p.label, "measured": p.value, "interval": _pair(p.interval)} for p in self.parts]
        return {
            "id": self.id,
            "section": self.section,
            "statement": self.statement,
            "measured": self.measured,
            "interval": _pair(self.interval),
            "verdict": self.verdict,
            "command": self.command,
            "unit": self.unit,
            "quantity": self.quantity,
            "rule": self.rule,
            "remark": self.remark,
            "models": list(self.models),
            "parts": parts,
        }


@dataclass(frozen=True)
class Judge:
    """A statement before its number is known. `measure` takes the data of `figure`; `unit` goes with the number where
    there is no room for `quantity`; `remark` is said with every verdict but "holds"."""

    id: str
    section: str
    statement: str
    unit: str
    quantity: str
    figure: str
    rule: Rule
    remark: str
    measure: Callable[[Any], Measured] = field(repr=False)

    @property
    def command(self) -> str:
        return f"sih figure {self.figure} --out out"

    def judge(self, data: Any) -> Statement:
        """`data` is the figure's, or a string: why there is none."""
        try:
            if isinstance(data, str):
                raise NotMeasuredError(data)
            found = self.measure(data)
        except NotMeasuredError as reason:
            return self._statement(None, "not measured", str(reason))
        verdict = self.rule.verdict(found.value, found.interval)
        return self._statement(found, verdict, "" if verdict == "holds" else self.remark)

    def _statement(self, found: Measured | None, verdict: Verdict, remark: str) -> Statement:
        number, interval = (None, None) if found is None else (found.value, found.interval)
        extra = (self.unit, self.quantity, str(self.rule), remark, self.figure)
        rest = () if found is None else (found.models, found.label, found.parts)
        return Statement(self.id, self.section, self.statement, number, interval, verdict, self.command, *extra, *rest)


def judged(
    id: str, section: str, statement: str, *, unit: str, quantity: str, figure: str, rule: Rule, remark: str = ""
) -> Callable[[Callable[[Any], Measured]], Judge]:
    """Makes a statement of the function that measures it."""

    def wrap(measure: Callable[[Any], Measured]) -> Judge:
        return Judge(id, section, statement, unit, quantity, figure, rule, remark, measure)

    return wrap


def some(found: list[Measured], reason: str) -> list[Measured]:
    """What was found, if anything was."""
    if not found:
        raise NotMeasuredError(reason)
    return found


def ratio(reference: float, difference: tuple[float, float], label: str, models: tuple[str, ...] = ()) -> Measured:
    """One over the other, from the paired difference and its standard error: two errors either way.

    >>> ratio(0.02, (0.001, 0.0005), "").value
    1.05
    """
    mean, error = difference
    ends = tuple(1 + (mean + side * error) / reference for side in (-2, 2))
    return Measured(1 + mean / reference, (ends[0], ends[1]), label, models=models)


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
