"""Verdicts on statements: each follows from numbers and their intervals, by a rule that
is printed with it.

A statement may concern several models, seeds or lag sets. Each is judged alone.
`combine` selects the number that decides for all: the worst, the median, or the share
that fits.

    standard-trained: 25.0 x construction -> does not hold (0 of 10 hold)
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, get_args

from sih.base import stats
from sih.results.experiment import Data, Experiment
from sih.results.models import PAPER_LENGTH, Models, TrainedModel
from sih.results.tables import braces

Verdict = Literal[
    "holds",
    "holds with a remark",
    "unsettled",
    "does not hold",
    "not measured at the paper's length",
    "not measured",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Verdicts, the best first. One left open by an unfinished run ranks above one refuted
by a finished run."""
OTHER_LENGTH: Verdict = "not measured at the paper's length"
Interval = tuple[float, float]


@dataclass(frozen=True)
class Measured:
    """A number with its interval, None if it is exact or a single draw."""

    value: float
    interval: Interval | None = None
    label: str = ""
    model: str = ""
    """The trained model that was measured."""
    papers_setting: bool | None = None
    """Whether the model was trained as in the paper, at the paper's length; None if
    nothing is trained."""
    unsettled: str = ""
    """Reason why the number may still change: "at 2,000 steps, where its KL still
    falls"."""
    parts: tuple[Measured, ...] = ()
    """The numbers from which it was chosen, e.g. one per window."""
    variant: bool = False
    """Whether this is a variant of the statement. If it fails, the statement holds with
    a remark at best, and is not refuted."""

    def about(self, model: TrainedModel, note: str = "") -> Measured:
        """Return the number as that of a trained model, with a note after its name."""
        return replace(
            self,
            label=f"{braces(model.lags)}, length {model.length}: {model.name}{note}",
            model=model.name,
            papers_setting=model.papers_setting,
            unsettled=model.unsettled,
        )

    @classmethod
    def of(cls, mean: float, error: float, label: str = "") -> Measured:
        """Return a number with two standard errors in each direction."""
        return cls(mean, stats.Estimate(mean, error).interval(), label)


@dataclass(frozen=True)
class Rule:
    """A rule for a number: at most, or at least, `limit`; up to `slack` the statement
    holds with a remark.
    """

    sense: Literal["at most", "at least"]
    limit: float
    slack: float

    def verdict(self, found: Measured) -> Verdict:
        """Return the verdict on a number, from the whole of its interval.

        >>> Rule("at most", 1.1, 1.25).verdict(Measured(1.08, (1.06, 1.12)))
        'holds with a remark'
        """
        low, high = found.interval or (found.value, found.value)
        right, worst = (operator.le, high) if self.sense == "at most" else (operator.ge, low)
        if right(worst, self.limit):
            return "holds"
        if right(found.value, self.slack):
            return "holds with a remark"
        return "unsettled" if found.unsettled else "does not hold"

    def worst(self, each: Iterable[Measured]) -> Measured:
        """Return the number that is worst for the statement."""
        sign = 1 if self.sense == "at most" else -1
        return max(each, key=lambda one: (VERDICTS.index(self.verdict(one)), sign * one.value))

    def __str__(self) -> str:
        remark = f"with a remark if the number is {self.sense} {self.slack:g}; otherwise it does not hold"
        return f"holds if the whole interval is {self.sense} {self.limit:g}; {remark}"


@dataclass(frozen=True)
class ShareRule(Rule):
    """A rule for the share of runs that succeed, applied to the whole of its interval."""

    sense: Literal["at most", "at least"] = "at least"
    limit: float = 0.5
    slack: float = 0.5

    def verdict(self, found: Measured) -> Verdict:
        """Return the verdict on a share, or on a single run (1 for success, 0 for
        failure).
        """
        low, high = found.interval or (found.value, found.value)
        if low >= self.limit:
            return "holds"
        return "does not hold" if high < self.limit and not found.unsettled else "unsettled"

    def __str__(self) -> str:
        return (
            f"holds if the whole interval of the share is at least {self.limit:g}; it does not hold if all of it is "
            "below; otherwise it is unsettled"
        )


BEYOND = "beyond the paper"
"""The section of statements beyond the paper."""
MATCH = Rule("at most", 1.10, 1.25)
"""Two KL divergences match if one is at most a tenth above the other; up to a quarter
with a remark."""
Combine = Callable[[Rule, Sequence[Measured]], Measured]


def worst(rule: Rule, each: Sequence[Measured]) -> Measured:
    """Return the number that is worst for the statement."""
    return rule.worst(each)


def median(rule: Rule, each: Sequence[Measured]) -> Measured:
    """Return the median, with the range as its interval, so that a rule tests every
    number.

    It is unsettled only if the unfinished runs could change the verdict, however good
    they may become.
    """
    if len(each) == 1:
        return each[0]
    values = sorted(one.value for one in each)
    better = min if rule.sense == "at most" else max
    at_best = statistics.median(
        better(one.value, rule.limit) if one.unsettled else one.value for one in each
    )
    could_turn = rule.verdict(Measured(at_best)) != "does not hold"
    reasons = "; ".join(f"{one.model} {one.unsettled}" for one in each if one.unsettled)
    label = f"median and range of {len(each)}"
    return Measured(
        statistics.median(values),
        (values[0], values[-1]),
        label,
        unsettled=reasons if could_turn else "",
    )


def share(rule: Rule, each: Sequence[Measured]) -> Measured:
    """Return the share of successful runs (1, otherwise 0), with Wilson's interval."""
    found = sum(one.value for one in each)
    interval = stats.wilson(int(found), len(each))
    label = f"{int(found)} of {len(each)}"
    open_ended = [f"{one.model} {one.unsettled}" for one in each if one.unsettled and not one.value]
    at_best = stats.wilson(int(found) + len(open_ended), len(each))
    reason = ""
    if interval[1] >= rule.limit > interval[0]:
        reason = f"by so few runs ({label})"
    elif open_ended and at_best[1] >= rule.limit > interval[0]:
        reason = "; ".join(open_ended)
    return Measured(found / len(each), interval, label, unsettled=reason)


@dataclass(frozen=True)
class Statement(Generic[Data]):
    """One statement, of the paper or ours (see `section`), with its measurement and its
    rule.

    `measure` takes the data of `experiment` and returns one number per model, seed or
    lag set. `unit` accompanies the number where `quantity` is too long; `remark`
    accompanies every verdict. `models` are the trained models concerned. If they are
    trained as in the paper, those at the paper's length decide. If there is none of
    that length, the number of the others is shown without a verdict.
    """

    id: str
    section: str
    text: str
    experiment: Experiment[Any, Data]
    measure: Callable[[Data], Sequence[Measured]] = field(repr=False)
    rule: Rule
    unit: str
    quantity: str
    remark: str = ""
    models: Models | None = None
    combine: Combine = field(default=worst, repr=False)

    @property
    def command(self) -> str:
        return f"sih figure {self.experiment.name} --out out"

    @property
    def as_in_the_paper(self) -> bool:
        """Return whether the statement concerns models trained as in the paper."""
        return self.models is not None and self.models.training == "paper"

    def judge(self, data: Data) -> Finding:
        """Return the finding: a verdict on each number of the experiment's data, and
        one for all.
        """
        each = tuple(self.measure(data))
        if not each:
            return not_measured(
                self, f"Nothing to compare among the shipped models that are: {self.models}."
            )
        decide = [one for one in each if not one.variant]
        at_paper = [one for one in decide if one.papers_setting]
        elsewhere = self.as_in_the_paper and not at_paper
        found = self.combine(self.rule, at_paper if self.as_in_the_paper and at_paper else decide)
        verdict = OTHER_LENGTH if elsewhere else self.rule.verdict(found)
        if verdict == "holds" and any(
            self.rule.verdict(one) != "holds" for one in each if one.variant
        ):
            verdict = "holds with a remark"
        remarks = [f"Unsettled {found.unsettled}."] if verdict == "unsettled" else []
        if elsewhere:
            by_rule = self.rule.verdict(found)
            remarks.append(
                f"No model of length {PAPER_LENGTH} is among them; the rule would say: {by_rule}."
            )
        return Finding(self, verdict, found, each, " ".join([*remarks, self.remark]).strip())


@dataclass(frozen=True)
class Finding:
    """A statement with its verdict, the deciding number, and the numbers from which it
    was chosen.
    """

    statement: Statement[Any]
    verdict: Verdict
    measured: Measured | None = None
    each: tuple[Measured, ...] = ()
    remark: str = ""

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the verdict on each number alone."""
        return tuple(self.statement.rule.verdict(one) for one in self.each)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the trained models behind the numbers."""
        return tuple(dict.fromkeys(one.model for one in self.each if one.model))

    @property
    def count(self) -> str:
        """Return how many of the numbers hold, "5 of 9"; "" for a single one."""
        said = [pair for pair in zip(self.each, self.verdicts, strict=True) if not pair[0].variant]
        if len(said) < 2:
            return ""
        count = f"{_holding(said)} of {len(said)}"
        at_paper = [pair for pair in said if pair[0].papers_setting]
        if self.statement.as_in_the_paper and 0 < len(at_paper) < len(said):
            count += f"; {_holding(at_paper)} of {len(at_paper)} at the paper's length"
        return count

    @property
    def paper_setting(self) -> str:
        """Return whether the models are trained as in the paper, at its length: "yes", "no", or "2 of 3".

        Without models it is "no model"; for a statement that is not about models, "".
        """
        if self.statement.models is None:
            return ""
        if not self.each:
            return "no model"
        at_paper = [bool(one.papers_setting) for one in self.each]
        if all(at_paper):
            return "yes"
        return f"{sum(at_paper)} of {len(at_paper)}" if any(at_paper) else "no"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of report.json."""
        asked, found = self.statement, self.measured
        judged = zip(self.each, self.verdicts, strict=True)
        parts = [
            {**_plain(part), "verdict": verdict, "unsettled": part.unsettled}
            for part, verdict in judged
        ]
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
            "count": self.count,
            "paper_setting": self.paper_setting,
            "chosen": str(asked.models or ""),
            "models": list(self.models),
            "parts": parts,
        }


def _holding(said: Iterable[tuple[Measured, Verdict]]) -> int:
    return sum(verdict == "holds" for _, verdict in said)


def _plain(one: Measured) -> dict[str, Any]:
    values = {
        "of": one.label,
        "measured": one.value,
        "interval": one.interval and list(one.interval),
    }
    if one.model:
        values |= {"model": one.model, "paper_setting": bool(one.papers_setting)}
    if one.parts:
        values["parts"] = [_plain(part) for part in one.parts]
    return values


def not_measured(statement: Statement[Any], reason: str) -> Finding:
    """Return a finding without a number, with the reason."""
    return Finding(statement, "not measured", remark=reason)


def ratio(reference: tuple[float, float], difference: tuple[float, float], label: str) -> Measured:
    """Return a ratio to a reference from the paired difference, each given as a number
    and its error.

    >>> ratio((0.02, 0.0), (0.001, 0.0005), "").value
    1.05
    """
    found = stats.ratio(stats.Estimate(*difference), stats.Estimate(*reference))
    return Measured.of(found.mean, found.error, label)
