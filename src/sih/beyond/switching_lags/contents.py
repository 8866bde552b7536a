"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.beyond.switching_lags import switching
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (shown(switching.EXPERIMENT),)
STATEMENTS: tuple[Statement[Any], ...] = ()
