"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.beyond.evidence_paths import channels, channels_statements
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (shown(channels.EXPERIMENT),)
STATEMENTS: tuple[Statement[Any], ...] = channels_statements.STATEMENTS
