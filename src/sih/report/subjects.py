"""The subjects of the report: the one place that lists them all.

A subject exports two tuples, FIGURES and STATEMENTS. Experiments need no list, since
each is read by a figure or a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

from sih.beyond.evidence_paths import contents as evidence_paths
from sih.beyond.relative_positions import contents as relative_positions
from sih.beyond.shared_heads import contents as shared_heads
from sih.beyond.switching_lags import contents as switching_lags
from sih.claim import contents as claim
from sih.paper import contents as paper
from sih.results.cache import Result
from sih.results.experiment import Experiment
from sih.results.figure import Figure
from sih.results.judging import BEYOND, Finding, Statement, not_measured
from sih.training.runs.run_store import nearest_names

Named = TypeVar("Named")


@runtime_checkable
class Subject(Protocol):
    """The figures and statements of one folder."""

    FIGURES: tuple[Figure[Any], ...]
    STATEMENTS: tuple[Statement[Any], ...]


SUBJECTS: tuple[Subject, ...] = (
    paper,
    claim,
    relative_positions,
    evidence_paths,
    shared_heads,
    switching_lags,
)
"""The subjects. A new one is a folder and a line here."""


def figures(subjects: Iterable[Subject] = SUBJECTS) -> dict[str, Figure[Any]]:
    """Return every figure by name, those beyond the paper last."""
    every = [one for subject in subjects for one in subject.FIGURES]
    papers_first = sorted(every, key=lambda one: one.experiment.beyond)
    return by_name((one.name, one) for one in papers_first)


def figure_named(name: str, every: Mapping[str, Figure[Any]]) -> Figure[Any]:
    """Return a figure; raise a ValueError with the nearest names if there is none."""
    if name not in every:
        raise ValueError(
            f"there is no figure {name!r}{nearest_names(name, every) or '.'} `sih figure --list` lists all"
        )
    return every[name]


def statements(subjects: Iterable[Subject] = SUBJECTS) -> dict[str, Statement[Any]]:
    """Return every statement by its name, in the order of the paper, ours last.

    Those of an experiment beyond the paper are at the very end.
    """
    every = [one for subject in subjects for one in subject.STATEMENTS]
    in_order = sorted(every, key=lambda one: (one.experiment.beyond, section_order(one.section)))
    return by_name((one.id, one) for one in in_order)


def section_order(section: str) -> tuple[bool, bool, str, bool]:
    """Return a section's rank: sections, then appendices, then beyond the paper.

    A statement of several sections follows those of its first section alone.

    >>> sorted(["App. B; Fig. 6", "Sec. 6, set-up", "Secs. 5.4 and 6", "Sec. 5.4"], key=section_order)
    ['Sec. 5.4', 'Secs. 5.4 and 6', 'Sec. 6, set-up', 'App. B; Fig. 6']
    """
    number = re.match(r"(?:Sec|App)s?\. ([\d.]+|[A-Z])", section)
    first = number[1] if number else ""
    return section == BEYOND, section.startswith("App"), first, " and " in section


def judge_all(results: Mapping[str, Result[Any]], every: Iterable[Statement[Any]]) -> list[Finding]:
    """Return findings for statements, from results by the experiment's name."""
    return [judge(one, results.get(one.experiment.name)) for one in every]


def judge(statement: Statement[Any], result: Result[Any] | None) -> Finding:
    """Return the finding for a statement, or the reason why there is no number."""
    if result is None:
        return not_measured(statement, f"figure {statement.experiment.name} was not made")
    if result.data is None:
        return not_measured(statement, result.missing)
    return statement.judge(result.data)


def resting_on(
    experiment: Experiment[Any, Any], subjects: Iterable[Subject] = SUBJECTS
) -> list[Statement[Any]]:
    """Return the statements with numbers from this experiment."""
    return [one for one in statements(subjects).values() if one.experiment.name == experiment.name]


def by_name(pairs: Iterable[tuple[str, Named]]) -> dict[str, Named]:
    """Return a dict of pairs; raise a ValueError if a name occurs twice."""
    found: dict[str, Named] = {}
    for name, one in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands twice")
        found[name] = one
    return found
