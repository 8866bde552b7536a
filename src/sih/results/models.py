"""Trained models chosen by their properties: a statement names the models that it
concerns in words.

    Models("standard", training="paper", heads="needed")
    str(...)    standard, as many heads as the circuit needs, trained as in the paper

Every shipped model that fits is chosen; names play no role. A user's own runs are
excluded, so that verdicts do not depend on the contents of a folder.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from sih.heads import heads_needed
from sih.training.config import TrainConfig
from sih.training.how_trained import PAPER_KINDS
from sih.training.runs.run import WEIGHTS, Run
from sih.training.runs.run_store import SHIPPED
from sih.training.task_config import TaskConfig

Training = Literal["paper", "SOAP", "Adam", "other"]
"""Training: as in the paper (Adam at a constant rate, for any number of steps), or from
harmonic positions with an optimiser."""
Heads = Literal["needed", "one", "fewer"]
"""Heads of the second layer: as many as the circuit needs; one, if it needs more; or
fewer, one or more."""
PAPER_LENGTH = TrainConfig().task.length
"""Length of the sequences in the paper's experiments."""
PAPER_STATES = TrainConfig().task.states
"""The number of states in the paper's experiments."""
WORDS: dict[str, str] = {
    "paper": "trained as in the paper",
    "SOAP": "trained by preset auto (SOAP)",
    "Adam": "trained by preset harmonic (Adam)",
    "other": "trained in another way",
    "needed": "as many heads as the circuit needs",
    "one": "one second-layer head where the circuit needs more",
    "fewer": "fewer second-layer heads than the circuit needs",
}

OUR_RECIPES: dict[str, tuple[str, Training, str]] = {
    "recipe": ("standard", "SOAP", "By preset auto (SOAP), standard models"),
    "recipe-tied": ("disentangled", "Adam", "By preset harmonic (Adam), disentangled models"),
    "recipe-tied-soap": (
        "disentangled",
        "SOAP",
        "By preset auto (SOAP), disentangled models",
    ),
}
"""Kinds of models and presets, by the suffixes of the names of statements about them."""


@dataclass(frozen=True)
class TrainedModel:
    """Properties of a trained model by which models are chosen."""

    name: str
    kind: str
    lags: tuple[int, ...]
    length: int
    heads: tuple[int, ...]
    training: Training
    seed: int
    dim: int | None
    """Width, None for the default of its kind."""
    states: int = PAPER_STATES
    unsettled: str = ""
    """Reason why its last KL may not be final: "at 2,000 steps, where its KL still
    falls". Empty for a finished run."""

    @property
    def papers_setting(self) -> bool:
        """Return whether it is trained as in the paper, on sequences of the paper's
        length.
        """
        return self.training == "paper" and self.length == PAPER_LENGTH


@dataclass(frozen=True)
class Models:
    """A choice of models. None means any. The number of states is the paper's by
    default.
    """

    kind: str | None = None
    training: Training | None = None
    heads: Heads | None = None
    lags: tuple[int, ...] | None = None
    number_of_lags: int | None = None
    layers: tuple[int, ...] | None = (3,)
    usual_width: bool = False
    longer_than: int = 0
    states: tuple[int, ...] | None = (PAPER_STATES,)

    def __contains__(self, model: TrainedModel) -> bool:
        return (
            self.kind in (None, model.kind)
            and self.training in (None, model.training)
            and self._shape_fits(model)
            and self._task_fits(model)
        )

    def _shape_fits(self, model: TrainedModel) -> bool:
        if self.layers is not None and len(model.heads) not in self.layers:
            return False
        if self.usual_width and model.dim:
            return False
        return self._heads_fit(model)

    def _task_fits(self, model: TrainedModel) -> bool:
        return (
            self.lags in (None, model.lags)
            and self.number_of_lags in (None, len(model.lags))
            and model.length > self.longer_than
            and (self.states is None or model.states in self.states)
        )

    def _heads_fit(self, model: TrainedModel) -> bool:
        if self.heads == "fewer":
            return has_fewer_heads(model)
        return self.heads in (None, heads_of(model))

    def __str__(self) -> str:
        words = [self.kind or "any kind"]
        if self.layers is not None:
            words.append(f"{' or '.join(map(str, self.layers))} layers")
        if self.lags is not None:
            words.append(f"lags {', '.join(map(str, self.lags))}")
        words += [f"{self.number_of_lags} lags"] if self.number_of_lags else []
        words += [WORDS[self.heads]] if self.heads else []
        words += ["the usual width"] if self.usual_width else []
        words += [f"more than {self.longer_than} positions"] if self.longer_than else []
        words += [WORDS[self.training]] if self.training else []
        if self.states not in (None, (PAPER_STATES,)):
            words.append(f"{' or '.join(map(str, self.states))} states")
        return ", ".join(words)


def shipped_models(*choices: Models) -> dict[str, TrainedModel]:
    """Return the shipped models on the paper's tasks, of the paper's kinds, that fit
    one of the choices, by name.
    """
    return {
        name: model for name, model in _shipped().items() if any(model in one for one in choices)
    }


@cache
def _shipped() -> dict[str, TrainedModel]:
    return described(_shipped_runs())


@cache
def _shipped_runs() -> tuple[Run, ...]:
    runs = [Run(path.parent) for path in sorted(SHIPPED.glob(f"*/{WEIGHTS}"))]
    return tuple(
        run
        for run in runs
        if run.config.task.is_paper_task and run.config.model.kind in PAPER_KINDS
    )


def described(runs: Iterable[Run]) -> dict[str, TrainedModel]:
    """Return the description of each run's model, by name.

    A run is also unsettled if another of its kind, shipped or among these, was trained
    for more steps. So a shipped model is described the same in every figure.
    """
    runs = list(runs)
    models = {run.name: model_of(run) for run in runs}
    longest, shipped = _most_steps(runs), _most_steps(_shipped_runs())
    for run in runs:
        model, steps = models[run.name], run.config.optimiser.steps
        most = max(longest[_kin(model)], shipped.get(_kin(model), 0))
        if model.training == "paper" and not model.unsettled and steps < most:
            why = f"at {steps:,} steps, where another run was given {most:,}"
            models[run.name] = replace(model, unsettled=why)
    return models


def _most_steps(runs: Iterable[Run]) -> dict[TrainedModel, int]:
    """Return the steps of the longest run for each group of `_kin`."""
    longest: dict[TrainedModel, int] = {}
    for run in runs:
        kin = _kin(model_of(run))
        longest[kin] = max(longest.get(kin, 0), run.config.optimiser.steps)
    return longest


def _kin(model: TrainedModel) -> TrainedModel:
    """Return the properties shared by runs that differ in seed or length alone."""
    return replace(model, name="", seed=0, length=0, unsettled="")


def model_of(run: Run) -> TrainedModel:
    """Return the description of a run's model."""
    config = run.config
    return TrainedModel(
        name=run.name,
        kind=config.model.kind,
        lags=config.task.lags,
        length=config.task.length,
        heads=config.heads,
        training=training_of(config),
        seed=config.seed,
        dim=width(config),
        states=config.task.states,
        unsettled=unsettled(run),
    )


def training_of(config: TrainConfig) -> Training:
    """Return the kind of training."""
    if trained_plainly(config):
        return "paper"
    if config.recipe.name != "harmonic":
        return "other"
    return "SOAP" if config.optimiser.name == "soap" else "Adam"


def trained_plainly(config: TrainConfig) -> bool:
    """Return whether a model is trained as in the paper: its optimiser and target, no
    recipe, any number of steps.
    """
    papers = TrainConfig(
        model=config.model.kind, steps=config.optimiser.steps
    )  # the defaults are the paper's
    parts = (config.recipe, config.optimiser, config.target)
    return parts == (papers.recipe, papers.optimiser, papers.target)


def recipe_in_words(config: TrainConfig) -> str:
    """Return a model's training in the words of legends: start, optimiser, and target
    unless it is the default.
    """
    if trained_plainly(config):
        return "unaided Adam"
    optimiser = {"adam": "Adam", "soap": "SOAP"}.get(config.optimiser.name, config.optimiser.name)
    target = "" if config.target == "sampled" else f", {config.target} as target"
    return f"{config.recipe.name} start, {optimiser}{target}"


def matrix_in_words(task: TaskConfig) -> str:
    """Return the name of a task's matrix, for titles.

    >>> matrix_in_words(TrainConfig(matrix_law="uniform", matrix_seed=11).task)
    'uniform matrix 11'
    """
    if task.matrix is not None:
        return "a given matrix"
    law = (
        f"Dirichlet({task.concentration:g})" if task.matrix_law == "dirichlet" else task.matrix_law
    )
    return f"{law} matrix {task.matrix_seed}"


def unsettled(run: Run) -> str:
    """Return the number of steps at which a run stopped with its KL still falling, or
    "".

    The KL still falls if the last tenth of its measurements has a mean more than 2 %
    below the tenth before. A run is finished if its learning rate was lowered to the
    end, whatever its KL did last.
    """
    if run.config.optimiser.schedule != "constant":
        return ""
    kl = [line["kl"] for line in run.evaluations]
    tenth = max(1, len(kl) // 10)
    last, before = kl[-tenth:], kl[-2 * tenth : -tenth]
    falls = bool(before) and sum(last) / len(last) < 0.98 * sum(before) / len(before)
    return f"at {run.evaluations[-1]['step']:,} steps, where its KL still falls" if falls else ""


def width(config: TrainConfig) -> int | None:
    """Return the model's width, None for the default of its kind."""
    dim: int | None = config.unusual().get("dim")
    return dim


def heads_of(model: TrainedModel) -> Heads | None:
    """Return a model's number of heads relative to the circuit's."""
    if model.heads == circuit_heads(model.lags):
        return "needed"
    return "one" if model.heads == (1, 1, 1) else None


def has_fewer_heads(model: TrainedModel) -> bool:
    """Return whether a model has three layers and fewer second-layer heads than the
    circuit needs.
    """
    needed = circuit_heads(model.lags)
    return len(model.heads) == 3 and model.heads[1] < needed[1]


def circuit_heads(lags: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the number of heads in each layer of the circuit; two lags need one in the second."""
    return 1, heads_needed(lags), 1
