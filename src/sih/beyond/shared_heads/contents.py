"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.beyond.shared_heads import cancellation, few_heads, few_heads_statements
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (shown(few_heads.EXPERIMENT), shown(cancellation.EXPERIMENT))
STATEMENTS: tuple[Statement[Any], ...] = few_heads_statements.STATEMENTS
