"""All statements, judged from the data of the figures that were made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sih.artifacts.keep import Kept
from sih.report import attention_statements as attention
from sih.report import theory_statements as theory
from sih.report import training_statements as training
from sih.report.rules import Judge, Statement


def _place(judge: Judge) -> tuple[bool, str]:
    """Sections before appendices, each in its order."""
    first = judge.section.split(",")[0].split(";")[0]
    return first.startswith("App"), first.replace("Secs", "Sec")


PAPER: tuple[Judge, ...] = tuple(sorted(theory.PAPER + training.PAPER + attention.PAPER, key=_place))
OURS: tuple[Judge, ...] = theory.OURS


def judge_all(made: Mapping[str, Kept[Any]], judges: Iterable[Judge] = PAPER + OURS) -> list[Statement]:
    """In the order given; a figure that was not made leaves its statements unmeasured, and they say why."""
    return [judge.judge(_data(made, judge.figure)) for judge in judges]


def resting_on(made: Kept[Any]) -> list[Statement]:
    """The statements whose numbers come from this figure."""
    return judge_all(
        {made.experiment.name: made}, [judge for judge in PAPER + OURS if judge.figure == made.experiment.name]
    )


def _data(made: Mapping[str, Kept[Any]], name: str) -> object:
    if name not in made:
        return f"figure {name} was not made"
    return made[name].missing or made[name].data
