"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.beyond.relative_positions import (
    positions,
    positions_statements,
    two_layers,
    two_layers_statements,
)
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (shown(positions.EXPERIMENT), shown(two_layers.EXPERIMENT))
STATEMENTS: tuple[Statement[Any], ...] = (
    *positions_statements.STATEMENTS,
    *two_layers_statements.STATEMENTS,
)
