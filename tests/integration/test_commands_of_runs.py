"""The command that is printed for a configuration trains that configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sih.cli import main, train_command
from sih.cli.train_command import command_of
from sih.task.matrices import RANDOM
from sih.training.config import TrainConfig
from sih.training.config_file import digest
from sih.training.presets import PRESETS, preset
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED, RunStore


class AskedError(Exception):
    """Carries the configuration that a command was about to train."""


def trained_by(command: str) -> TrainConfig:
    """Run a printed command up to the point at which it would begin a run."""

    def begin(config: TrainConfig, *_: object, **__: object) -> None:
        raise AskedError(config)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_command, "RunWriter", begin)
        with pytest.raises(AskedError) as asked:
            main(command.split()[1:])
    config = asked.value.args[0]
    assert isinstance(config, TrainConfig)
    return config


@pytest.mark.parametrize("name", RunStore().names())
def test_a_shipped_models_command_gives_its_digest(name: str) -> None:
    config = Run(SHIPPED / name).config
    again = trained_by(command_of(config))
    assert again == config
    assert digest(again) == digest(config)


TASKS = st.fixed_dictionaries(
    {},
    optional={
        "lags": st.sampled_from([(1, 2), (1, 3), (2, 3, 5)]),
        "states": st.integers(2, 6),
        "length": st.sampled_from([40, 64, 128]),
        "matrix_seed": st.integers(0, 2**40),
        "seed": st.integers(0, 2**40),
        "stored": st.sampled_from(["float32", "float16"]),
        "evaluate_every": st.integers(1, 500),
        "learning_rate": st.floats(1e-9, 1.0),
    },
)
LAWS = st.one_of(
    st.fixed_dictionaries({"matrix_law": st.sampled_from(list(RANDOM))}),
    st.fixed_dictionaries({"concentration": st.floats(0.1, 10.0)}),
    st.fixed_dictionaries({"fresh": st.booleans(), "concentration": st.floats(0.1, 10.0)}),
    st.fixed_dictionaries({"switch_rate": st.floats(0.0, 0.9)}),
)
MODELS = st.one_of(
    st.fixed_dictionaries(
        {"model": st.just("disentangled"), "heads": st.sampled_from([(1, 2, 1), (1, 1, 1)])}
    ),
    st.fixed_dictionaries(
        {"dim": st.sampled_from([64, 96]), "mlp_dim": st.sampled_from([None, 16])}
    ),
)


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(list(PRESETS)), task=TASKS, law=LAWS, model=MODELS)
def test_a_random_configurations_command_gives_its_digest(
    name: str, task: dict[str, Any], law: dict[str, Any], model: dict[str, Any]
) -> None:
    if name == "paper-disentangled":
        model = {"model": "disentangled"}
    if name == "paper-relative":  # it has a law of its own, without a concentration
        model, law = {"model": "relative"}, {"matrix_law": "sparse", "matrix_seed": 3}
        task = {field: value for field, value in task.items() if field != "matrix_seed"}
    config = preset(name, **task, **law, **model)
    again = trained_by(command_of(config))
    assert again == config
    assert digest(again) == digest(config)


def test_flags_of_true_or_false_are_printed_as_they_are_read() -> None:
    assert command_of(TrainConfig(fresh=True, lags=(1, 2))) == "sih train --lags 1 2 --fresh"
    assert command_of(TrainConfig(matrix_law="uniform", matrix_seed=11)) == (
        "sih train --matrix-seed 11 --matrix-law uniform"
    )
