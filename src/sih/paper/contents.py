"""Figures and statements that the report takes from this folder.

No experiment imports this module, so a new line here recomputes nothing.
"""

from __future__ import annotations

from typing import Any

from sih.paper import (
    agreement,
    agreement_statements,
    attention_maps,
    beta_along,
    certificates,
    certificates_statements,
    constructions,
    constructions_statements,
    errata,
    heads,
    heads_statements,
    mechanism,
    other_sizes,
    other_sizes_statements,
    predictors,
    predictors_statements,
    recipes,
    scaling,
    scaling_statements,
    teaser,
    trained,
    trained_statements,
)
from sih.results.figure import Figure, shown
from sih.results.judging import Statement

FIGURES: tuple[Figure[Any], ...] = (
    shown(teaser.EXPERIMENT),
    shown(mechanism.EXPERIMENT),
    shown(certificates.EXPERIMENT),
    shown(predictors.EXPERIMENT),
    shown(beta_along.EXPERIMENT),
    shown(constructions.EXPERIMENT),
    shown(trained.EXPERIMENT),
    *(shown(one) for one in attention_maps.EXPERIMENTS),
    shown(agreement.EXPERIMENT),
    shown(scaling.EXPERIMENT),
    shown(other_sizes.EXPERIMENT),
    shown(heads.EXPERIMENT),
    shown(errata.EXPERIMENT),
    shown(recipes.EXPERIMENT),
)
STATEMENTS: tuple[Statement[Any], ...] = (
    *certificates_statements.STATEMENTS,
    *predictors_statements.STATEMENTS,
    *constructions_statements.STATEMENTS,
    *heads_statements.STATEMENTS,
    *trained_statements.STATEMENTS,
    *agreement_statements.STATEMENTS,
    *scaling_statements.STATEMENTS,
    *other_sizes_statements.STATEMENTS,
)
