"""Statements on evidence paths, by causal measurements (Sec. 6): layer 3 reads the
values of layer 2.

The paper infers this from the similarity of attention maps. In the construction, layer
3 chooses by the values of layer 2's heads. The alternative path is their attention
patterns.
"""

from __future__ import annotations

from functools import partial

from sih.beyond.evidence_paths import channels as channel_account
from sih.beyond.evidence_paths.channel_shares import Channels
from sih.beyond.evidence_paths.channels import Accounts
from sih.results.judging import BEYOND, Measured, Rule, Statement, median
from sih.results.models import OUR_RECIPES, Models

CARRIED = Rule("at least", 0.75, 0.5)

QUANTITY = (
    "evidence in layer 3's scores that comes through values, as a share of that through values and patterns "
    "(sih.evidence_flow); 1 for the construction; the median model, and the range"
)

REMARK = (
    "Part of the evidence may come through the attention patterns of layer 2: see figure channels and "
    "docs/results/evidence-paths.md. The statement is about one solution: the circuit `looking` "
    "has 0, and is better than maximum likelihood too."
)


def carried(found: Channels) -> float:
    """Return the share of the values in the evidence through the middle layers."""
    (looked, _), (held, _) = found.shares["looked"], found.shares["carried"]
    return held / (looked + held)


def _carried(models: Models, data: Accounts) -> list[Measured]:
    fit = [one for one in data.models.values() if one.model in models]
    return [Measured(carried(one.channels)).about(one.model) for one in fit]


def _statement(id: str, how: str, models: Models) -> Statement[Accounts]:
    text = f"{how}, the third layer selects by the values of the second, as in the construction."
    measure = partial(_carried, models)
    return Statement(
        id,
        BEYOND,
        text,
        channel_account.EXPERIMENT,
        measure,
        CARRIED,
        "share",
        QUANTITY,
        REMARK,
        models,
        median,
    )


PLAIN_CARRIES = _statement(
    "plain-layer-2-carries", "Trained as in the paper", Models(training="paper")
)

RECIPE_CARRIES = tuple(
    _statement(f"{end}-layer-2-carries", how, Models(kind, training))
    for end, (kind, training, how) in OUR_RECIPES.items()
)

STATEMENTS = (PLAIN_CARRIES, *RECIPE_CARRIES)
