"""The number behind a finding."""

from __future__ import annotations

from sih.results.judging import Finding, Measured


def number_of(found: Finding) -> Measured:
    """What was measured, where something was."""
    assert found.measured is not None, found.remark
    return found.measured
