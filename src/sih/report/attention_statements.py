"""States where trained transformers look (Sec. 6, "Trained vs constructed attention maps"; App. C)."""

from sih.analysis.distances import summary
from sih.experiments import agreement
from sih.experiments.agreement import Agreements
from sih.experiments.curves import Compared
from sih.report.rules import BEYOND, Measured, Rule, Statement, median_and_range, require
from sih.stats import Estimate

ALIKE = Rule("at most", 0.1, 0.3)
"""Total variation of two rows of attention: at most a tenth of the mass is elsewhere."""


def _of_models(
    id: str, section: str, text: str, unit: str, quantity: str, rule: Rule, remark: str, key: str
) -> tuple[Statement[Agreements], Statement[Agreements]]:
    """Make a statement on a number of `agreement`, of models trained as in the paper and of those of our recipe."""
    quantity += "; the median model, and the range over models"

    def statement(id: str, section: str, text: str, plain: bool) -> Statement[Agreements]:
        def measure(data: Agreements) -> Measured:
            way = "as the paper trains" if plain else "with our recipe"
            models = {name: summary(entry)[key] for name, entry in data.with_usual_heads(plain).items()}
            found = [_measured(name, *number, data.compared[name]) for name, number in models.items()]
            return median_and_range(require(found, f"no model trained {way} is there"))

        return Statement(id, section, text, agreement.EXPERIMENT, measure, rule, unit, quantity, remark)

    return statement(id, section, text, True), statement(f"{id}-recipe", BEYOND, f"With our recipe: {text}", False)


def _measured(name: str, mean: float, error: float, of: Compared) -> Measured:
    return Measured(mean, Estimate(mean, error).interval(), name, models=(name,), unsettled=of.unsettled)


LAYER_1_SCORES, _LAYER_1_SCORES = _of_models(
    "layer-1-scores", "Sec. 6, attention maps",
    "The scores of the trained first layer are proportional to log P.",
    "correlation",
    "correlation of the first layer's scores with log P over the keys at the lags, a constant per query removed "
    "(softmax does not see it)",
    Rule("at least", 0.95, 0.8),
    "It depends on the model, see below. A negative correlation is a head that looks away from the likely parent, "
    "which tells the next layers as much.",
    "correlation, lags",
)  # fmt: skip
LAYER_1_MAPS, _LAYER_1_MAPS = _of_models(
    "layer-1-maps", "Sec. 6, attention maps; Fig. 5",
    "The first layer's attention is nearly the same, trained and constructed.",
    "total variation",
    "total variation between rows of the trained and the constructed first layer, on average",
    ALIKE, "The trained head does its part in another way, or looks at further positions too.",
    "variation, layer 1",
)  # fmt: skip
LAYER_2_DIAGONALS, _LAYER_2_DIAGONALS = _of_models(
    "layer-2-diagonals", "Sec. 6, attention maps; Fig. 5",
    "The second layer's attention has a clear diagonal pattern, if not the construction's own.",
    "share",
    "share of the variance of the second layer's scores within a query that the offset alone explains (1 for the "
    "construction)",
    Rule("at least", 0.5, 0.25),
    "The trained second layers compare positions, but by more than their offset: aggregation has many solutions.",
    "layer 2, by offset",
)  # fmt: skip
LAYER_3_MAPS, _LAYER_3_MAPS = _of_models(
    "layer-3-maps", "Sec. 6, attention maps; Fig. 5",
    "The third layer's attention is nearly the same, trained and constructed.",
    "total variation",
    "total variation between rows of the trained and the constructed third layer, on average",
    ALIKE,
    "Part of it is that the trained model hedges at the first positions, where the construction selects; lag 1 needs "
    "no attention at all, since the residual stream holds that token.",
    "variation, layer 3",
)  # fmt: skip
LAYER_3_SELECTS, _LAYER_3_SELECTS = _of_models(
    "layer-3-selects", "Sec. 5.2 and Sec. 6; Fig. 5, App. C",
    "The third layer's attention concentrates on the token that the true lag copies.",
    "share",
    "share of the third layer's attention on that token, averaged over positions and lags",
    Rule("at least", 0.9, 0.75),
    "Lag 1 copies the query's own token, which the residual stream holds: some models do not attend to it.",
    "selected",
)  # fmt: skip
RECIPE = (_LAYER_1_SCORES, _LAYER_1_MAPS, _LAYER_2_DIAGONALS, _LAYER_3_MAPS, _LAYER_3_SELECTS)
"""The same of models trained with our recipe."""
