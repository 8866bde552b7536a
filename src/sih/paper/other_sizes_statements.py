"""Statements on alphabets of other sizes than five (Sec. 6, setup)."""

from __future__ import annotations

from functools import partial

from sih.paper import other_sizes
from sih.paper.other_sizes import CONSTRUCTION, OtherSizes
from sih.results.curves import minus
from sih.results.judging import BEYOND, MATCH, Measured, Rule, Statement, ratio
from sih.results.models import Models
from sih.training.runs.evaluation import FOUND

OTHERS = (3, 10)
FINDS = Rule("at least", FOUND, 0.8)
"""Position between equal weights (0) and ML (1) from which the circuit counts as found
(`sih.evaluate`)."""


def _ways(models: Models, data: OtherSizes) -> list[Measured]:
    """Return each model's position between equal weights (0) and ML (1).

    It is that of the worst window from 17 tokens on.
    """
    found = []
    for panel in data.panels:
        for one in panel.models.values():
            if one.model in models:
                parts = tuple(Measured.of(*pair, label) for label, pair in one.ways.items())
                least = min(parts, key=lambda part: part.value)
                note = f", {panel.states} states, {least.label} tokens seen"
                about = Measured(least.value, least.interval, "", parts=parts)
                found.append(about.about(one.model, note))
    return found


def _over_ml(data: OtherSizes) -> list[Measured]:
    """Return the KL of the construction over that of ML, for each number of states."""
    ratios = []
    for panel in data.panels:
        ml = panel.kl["ML"]
        construction_minus_ml = minus(panel.kl[CONSTRUCTION], ml)
        label = f"{panel.states} states"
        ratios.append(ratio(ml.whole.pair(), construction_minus_ml.pair(), label))
    return ratios


def _trained(id: str, section: str, text: str, models: Models) -> Statement[OtherSizes]:
    return Statement(
        id, section, text, other_sizes.EXPERIMENT, partial(_ways, models), FINDS, "of the way",
        "position of the model between equal weights for all candidates (0) and ML (1), in its "
        "worst window from 17 tokens on; the worst model",
        "Those of 5 states are judged in the rows on trained models.", models,
    )  # fmt: skip


OTHER_SIZES = _trained(
    "other-sizes", "Sec. 6, setup",
    "No differences are observed for alphabets of other sizes: training finds the circuit for 3 "
    "and for 10 states.",
    Models("standard", "paper", "needed", states=OTHERS),
)  # fmt: skip

OTHER_SIZES_RECIPE = _trained(
    "other-sizes-recipe", BEYOND,
    "By preset auto, standard: training finds the circuit for 3 and for 10 states.",
    Models("standard", "SOAP", "needed", states=OTHERS),
)  # fmt: skip

OTHER_SIZES_CONSTRUCTION = Statement(
    "other-sizes-construction", "Sec. 6, setup",
    "No differences are observed for alphabets of other sizes: the construction matches maximum likelihood.",
    other_sizes.EXPERIMENT, _over_ml, MATCH, "KL/ML",
    "mean KL of the construction over that of ML past the largest lag, lags {1,2,3}, one matrix of each size; the "
    "worst of 3, 5 and 10 states",
    "As written it is above ML at the first positions (errata 4 and 5).",
)  # fmt: skip

STATEMENTS = (OTHER_SIZES_CONSTRUCTION, OTHER_SIZES, OTHER_SIZES_RECIPE)
