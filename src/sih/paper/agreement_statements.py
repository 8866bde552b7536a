"""Statements on the attention of trained transformers (Sec. 6, "Trained vs constructed
attention maps"; App. C).

Two questions are separate. In what share of the runs does training find a selective
head? And how similar are the construction and the models that have one? A model has a
selective head if its last layer reaches `SELECTIVE` of the posterior's weight on the
true lag's candidate. No head can know more than the posterior.
"""

from __future__ import annotations

from collections.abc import Callable

from sih.attention.distances import summary
from sih.paper import agreement
from sih.paper.agreement import Agreements
from sih.results.judging import (
    BEYOND,
    Combine,
    Measured,
    Rule,
    ShareRule,
    Statement,
    median,
    share,
    worst,
)
from sih.results.models import OUR_RECIPES, Models

SELECTIVE = 0.8
"""Share of the posterior's weight on the true lag that makes a head selective."""

ALIKE = Rule("at most", 0.1, 0.3)
"""Total variation up to which two rows of attention are alike: at most a tenth of the
mass differs."""

ONE_SOLUTION = (
    "It asks of models with a selective head whether they are the paper's solution. There are others, better than "
    "maximum likelihood: the circuits `bayes` and `looking` (docs/results/evidence-paths.md)."
)


Number = Callable[[Agreements, str], Measured]


def selects(data: Agreements, name: str) -> bool:
    """Return whether a model has a selective head."""
    return data.selection[name].relative[0] >= SELECTIVE


def shares(data: Agreements, name: str) -> str:
    """Return a model's share on the true lag next to the posterior's, in words."""
    one = data.selection[name]
    return f"{one.selected[0]:.3f} on the true lag, posterior {one.posterior[0]:.3f}"


def _statements(
    id: str,
    section: str,
    text: str,
    number: Number,
    rule: Rule,
    unit: str,
    quantity: str,
    *,
    remark: str = "",
    combine: Combine = median,
    only_selective: bool = True,
) -> tuple[Statement[Agreements], ...]:
    """Return one statement on models trained as in the paper, and one per preset of
    this package.
    """  # fmt: skip

    def of(id: str, section: str, text: str, models: Models) -> Statement[Agreements]:
        def measure(data: Agreements) -> list[Measured]:
            fit = [name for name, one in data.facts.items() if one in models]
            names = [name for name in fit if selects(data, name) or not only_selective]
            return [_of_model(number(data, name), data, name) for name in names]

        return Statement(
            id,
            section,
            text,
            agreement.EXPERIMENT,
            measure,
            rule,
            unit,
            quantity,
            remark,
            models,
            combine,
        )

    papers = of(id, section, text, Models(training="paper"))
    ours = (
        of(f"{id}-{end}", BEYOND, f"{words}: {text}", Models(kind, training))
        for end, (kind, training, words) in OUR_RECIPES.items()
    )
    return papers, *ours


def _of_model(found: Measured, data: Agreements, name: str) -> Measured:
    return found.about(data.facts[name], f"; {found.label}" if found.label else "")


def _summarised(key: str) -> Number:
    return lambda data, name: Measured.of(*summary(data.models[name])[key])


def _size(data: Agreements, name: str) -> Measured:
    """Return the size of the correlation, with its sign in words."""
    mean, error = summary(data.models[name])["correlation, lags"]
    return Measured.of(abs(mean), error, "positive" if mean > 0 else "negative")


def _relative(data: Agreements, name: str) -> Measured:
    return Measured.of(*data.selection[name].relative, shares(data, name))


def _is_selective(data: Agreements, name: str) -> Measured:
    return Measured(float(selects(data, name)), None, shares(data, name))


BESIDE = "beside what the posterior of the true lag has there, the most that can be known, over the same positions"

SELECTIVE_HEAD, *_SELECTIVE_HEAD = _statements(
    "selective-head", "Sec. 5.2 and Sec. 6",
    "Training finds a selective head: a last layer whose attention follows the true lag.",
    _is_selective, ShareRule(), "of the runs",
    f"share of the runs whose last layer has, on the token that the true lag copies, at least {SELECTIVE:g} of what "
    "the posterior has there (mean over 512 sequences; of models of the presets auto and harmonic, 64), with "
    "Wilson's interval; 1 is a run that has it, 0 one that has not",
    remark="Lag 1 copies the query's own token, which the residual stream holds: a model need not attend to it.",
    combine=share, only_selective=False,
)  # fmt: skip

LAYER_3_SELECTS, *_LAYER_3_SELECTS = _statements(
    "layer-3-selects", "Sec. 5.2 and Sec. 6; Fig. 5, App. C",
    "Where there is a selective head, its attention concentrates on the token that the true lag copies as far as the "
    "lag can be known.",
    _relative, Rule("at least", 0.95, SELECTIVE), "of the posterior's",
    f"attention on the token that the true lag copies, {BESIDE}; the worst model",
    remark="The exact posterior has 1, the circuit `looking` (docs/results/evidence-paths.md) "
    "0.95 to 0.99 at length 32.",
    combine=worst,
)  # fmt: skip

LAYER_1_SCORES, *_LAYER_1_SCORES = _statements(
    "layer-1-scores", "Sec. 6, attention maps",
    "The scores of the trained first layer are proportional to log P.",
    _size, Rule("at least", 0.95, 0.8), "correlation, its size",
    "size of the correlation of the first layer's scores with log P over the keys at the lags, a constant per query "
    "removed (softmax does not see it); the sign stands with each model",
    remark="A negative correlation is a head that prefers unlikely parents; the next layers can use either "
    f"sign. {ONE_SOLUTION}",
)  # fmt: skip

LAYER_1_MAPS, *_LAYER_1_MAPS = _statements(
    "layer-1-maps", "Sec. 6, attention maps; Fig. 5",
    "The first layer's attention is nearly the same, trained and constructed.",
    _summarised("variation, layer 1"), ALIKE, "total variation",
    "total variation between rows of the trained and the constructed first layer, on average",
    remark=f"The Bayes-optimal circuit, which tempers its first layer, is at 0.15 to 0.25. {ONE_SOLUTION}",
)  # fmt: skip

LAYER_2_DIAGONALS, *_LAYER_2_DIAGONALS = _statements(
    "layer-2-diagonals", "Sec. 6, attention maps; Fig. 5",
    "The second layer's attention has a clear diagonal pattern, if not the construction's own.",
    _summarised("layer 2, by offset"), Rule("at least", 0.5, 0.25), "share",
    "share of the variance of the second layer's scores within a query that the offset alone explains (1 for the "
    "construction)",
    remark=f"Circuits in which lags mix in a head, or that look, have no diagonals. {ONE_SOLUTION}",
)  # fmt: skip

LAYER_3_MAPS, *_LAYER_3_MAPS = _statements(
    "layer-3-maps", "Sec. 6, attention maps; Fig. 5",
    "The third layer's attention is nearly the same, trained and constructed.",
    _summarised("variation, layer 3"), ALIKE, "total variation",
    "total variation between rows of the trained and the constructed third layer, on average",
    remark="Part of it is that trained models hedge at the first positions, where the construction selects. "
    f"{ONE_SOLUTION}",
)  # fmt: skip

CONSISTENT = "Even with fewer second-layer heads than lags the layers remain consistent with the construction"
SELECTS = Rule("at least", SELECTIVE, 0.6)


def _fewer_heads(
    layer: int, words: str, number: Number, rule: Rule, unit: str, quantity: str, remark: str
) -> tuple[Statement[Agreements], ...]:
    """Return one statement on a layer of models trained as in the paper, and one for
    the presets of this package.
    """
    text = f"{CONSISTENT}: {words}."

    def of(id: str, section: str, text: str, models: Models) -> Statement[Agreements]:
        def measure(data: Agreements) -> list[Measured]:
            names = [name for name, one in data.facts.items() if one in models]
            return [_of_model(number(data, name), data, name) for name in names]

        return Statement(
            id, section, text, agreement.EXPERIMENT, measure, rule, unit, quantity, remark, models
        )

    id, recipe = f"fewer-heads-layer-{layer}", OUR_RECIPES["recipe"]
    return (
        of(id, "App. B; Fig. 7", text, Models("standard", "paper", "fewer")),
        of(
            f"{id}-recipe",
            BEYOND,
            f"{recipe[2]}: {text}",
            Models("standard", recipe[1], "fewer"),
        ),
    )


FEWER_HEADS = (
    *_fewer_heads(
        1, "the first extracts transition probabilities", _size, Rule("at least", 0.95, 0.8), "correlation, its size",
        "size of the correlation of the first layer's scores with log P over the keys at the lags, a constant per "
        "query removed; the worst model", ONE_SOLUTION,
    ),
    *_fewer_heads(
        2, "the second aggregates them in diagonals", _summarised("layer 2, by offset"), Rule("at least", 0.5, 0.25),
        "share",
        "share of the variance of the second layer's scores within a query that the offset alone explains (1 for the "
        "construction); the worst model", ONE_SOLUTION,
    ),
    *_fewer_heads(
        3, "the third is the selective head", _relative, SELECTS, "of the posterior's",
        f"attention on the token that the true lag copies, {BESIDE}; the worst model",
        "With fewer heads the construction itself leaves transitions out, and knows less than the posterior.",
    ),
)  # fmt: skip

RECIPE = (
    *_SELECTIVE_HEAD, *_LAYER_3_SELECTS, *_LAYER_1_SCORES, *_LAYER_1_MAPS, *_LAYER_2_DIAGONALS, *_LAYER_3_MAPS,
)  # fmt: skip
"""The same statement for models trained with the presets of this package."""

STATEMENTS = (
    SELECTIVE_HEAD,
    LAYER_3_SELECTS,
    LAYER_1_SCORES,
    LAYER_1_MAPS,
    LAYER_2_DIAGONALS,
    LAYER_3_MAPS,
    *FEWER_HEADS,
    *RECIPE,
)
