"""Lists all statements in the order of the paper, and judges them from the data of their experiments."""

from collections.abc import Iterable, Mapping
from typing import Any

from sih.report import attention_statements as attention
from sih.report import channel_statements as channel
from sih.report import circuit_statements as circuit
from sih.report import claim_statements as claim
from sih.report import training_statements as training
from sih.results.cache import Kept
from sih.results.judging import Finding, Statement, not_measured

PAPER: tuple[Statement[Any], ...] = (
    *(
        circuit.PROPOSITION,
        attention.SELECTIVE_HEAD,
        attention.LAYER_3_SELECTS,
    ),  # Secs. 5.1 and 5.2
    *(claim.CLAIM, claim.LARGE_BETA, claim.ASYMPTOTICS),  # Sec. 5.3
    *(claim.ONE_HEAD_RATE, circuit.ONE_HEAD_KL, circuit.ANY_LAGS, circuit.HEAD_RANGE),  # Sec. 5.4
    *(circuit.TWO_LAGS, circuit.TWO_LAGS_OPTIMAL),
    *(circuit.CONSTRUCTION_ML, training.STANDARD_TRAINED, training.DISENTANGLED_TRAINED),  # Sec. 6
    *(
        training.ONE_HEAD_TRAINED,
        training.TWO_LAGS_TRAINED,
        training.TWO_LAGS_SHORT,
        training.WIDTH_64,
    ),
    *(training.PAPER_TRAINING, attention.LAYER_1_SCORES, attention.LAYER_1_MAPS),
    *(attention.LAYER_2_DIAGONALS, attention.LAYER_3_MAPS),
    *(
        training.TWO_LAYERS,
        training.MORE_LAYERS,
        training.MORE_HEADS,
        training.ENOUGH_HEADS,
    ),  # App. B
    *(claim.CLAIM_25, claim.CUMULATIVE, claim.CUMULATIVE_25),  # App. E
)
OURS: tuple[Statement[Any], ...] = (
    *(circuit.BAYES_WEIGHTS, circuit.BAYES_KL, circuit.FEWER_HEADS),
    *(training.STANDARD_RECIPE, training.DISENTANGLED_ADAM, training.DISENTANGLED_RECIPE),
    *(
        training.TWO_LAYERS_RECIPE,
        training.TWO_LAYERS_ADAM,
        training.MORE_LAYERS_RECIPE,
        training.MORE_LAYERS_ADAM,
    ),
    *(training.MORE_HEADS_RECIPE, training.ENOUGH_HEADS_RECIPE),
    *attention.RECIPE,
)
MORE: tuple[Statement[Any], ...] = (
    *(channel.PLAIN_CARRIES, *channel.RECIPE_CARRIES),
    *(circuit.MIXED_EXACT, circuit.MIXED_ONE_HEAD),
)
"""Of experiments that go beyond the paper."""


def judge_all(
    kept: Mapping[str, Kept[Any]], statements: Iterable[Statement[Any]] = PAPER + OURS
) -> list[Finding]:
    """Judge the statements on the data of their experiments, by name.

    An experiment without data leaves its statements unmeasured, and they say why.
    """

    def judge(one: Statement[Any]) -> Finding:
        found = kept.get(one.experiment.name)
        if found is None or found.data is None:
            reason = found.missing if found else f"figure {one.experiment.name} was not made"
            return not_measured(one, reason)
        return one.judge(found.data)

    return [judge(one) for one in statements]


def resting_on(kept: Kept[Any]) -> list[Finding]:
    """Judge the statements whose numbers come from this experiment."""
    name = kept.experiment.name
    return judge_all(
        {name: kept}, [one for one in PAPER + OURS + MORE if one.experiment.name == name]
    )
