"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.claim import (
    beta,
    beta_statements,
    claim_cumulative,
    claim_cumulative_statements,
    claim_expectations,
    claim_expectations_statements,
    claim_histogram,
    claim_theorem,
    wrong_lag,
    wrong_lag_statements,
)
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (
    shown(claim_histogram.EXPERIMENT),
    shown(beta.EXPERIMENT),
    shown(claim_expectations.EXPERIMENT),
    shown(claim_expectations.EXPERIMENT_25),
    shown(claim_cumulative.EXPERIMENT),
    shown(claim_cumulative.EXPERIMENT_25),
    shown(claim_theorem.EXPERIMENT),
    shown(wrong_lag.EXPERIMENT),
)
STATEMENTS: tuple[Statement[Any], ...] = (
    *claim_expectations_statements.STATEMENTS,
    *beta_statements.STATEMENTS,
    *wrong_lag_statements.STATEMENTS,
    *claim_cumulative_statements.STATEMENTS,
)
