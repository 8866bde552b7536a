"""The number behind a finding, and what the statements are about."""

from __future__ import annotations

from sih.report import subjects
from sih.results.judging import BEYOND, Finding, Measured


def number_of(found: Finding) -> Measured:
    """What was measured, where something was."""
    assert found.measured is not None, found.remark
    return found.measured


STATEMENTS = tuple(subjects.statements().values())
PAPER = tuple(one for one in STATEMENTS if one.section != BEYOND)
MORE = tuple(one for one in STATEMENTS if one.experiment.beyond)
OURS = tuple(one for one in STATEMENTS if one not in (*PAPER, *MORE))
"""The statements of the paper, of experiments that go beyond it, and our others."""
