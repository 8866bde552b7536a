"""What is trained: a complete description of a run, in parts, each of which checks itself.

    TrainConfig(lags=(1, 3), model="disentangled", init="harmonic", steps=2400).task.lags

Fields have flat names, whatever part they are in: in the constructor, as flags of `sih train`, in presets and sweeps.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from sih.checks import FieldError, check_choice, check_kind, check_sizes
from sih.models import KINDS, ModelShape
from sih.showing import Shown
from sih.task import Batch, LagTask, sample
from sih.training.optimiser import OPTIMISERS, Optimiser
from sih.training.recipes import Recipe, recipe_named
from sih.training.task_config import TaskConfig, check_seed

STORED = ("float32", "float16")
TARGETS = ("sampled", "distribution")
"""What the loss compares a prediction with: the token that was drawn, or the distribution that it was drawn from."""
WORDS = {"model": "standard", "init": "uniform", "optimiser": "adam"}
"""The words that choose a kind of model, a recipe and an optimiser, with their defaults."""
RENAMED = {"held": "frozen_steps", "shorter": "length_schedule"}
"""Old names of fields, still read in files and flags."""
TOP = ("seed", "stored", "target")
"""Fields that belong to no part."""
HELD_OUT_SEED = 2**40
"""Added to `matrix_seed`, the seed of the held-out sequences. To torch's generator on the CPU, which takes seeds modulo
2**32, this is 0: held-out sequences are those of seed `matrix_seed`, and a run with that `seed` starts from the same
random numbers, of which it draws its weights first. None of the held-out sequences is in the first 25 batches of such a
run (tests/unit/training/test_held_out.py). Measurements on disk rest on this seed: it stays."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Says when and on how many sequences a model is measured while it is trained."""

    evaluate_every: int = 250
    """steps between two measurements of KL on the held-out sequences; another follows the last step."""
    held_out: int = 512
    """number of held-out sequences, the same throughout."""

    def __post_init__(self) -> None:
        check_sizes(evaluate_every=self.evaluate_every, held_out=self.held_out)


PARTS: dict[str, type] = {
    "task": TaskConfig,
    "model": ModelShape,
    "optimiser": Optimiser,
    "recipe": Recipe,
    "evaluation": EvaluationConfig,
}


class Example(NamedTuple):
    """Holds two ways to give a part: its fields by their flat names, and the part as a whole."""

    flat: str
    whole: str


EXAMPLES = {
    "task": Example("lags=(1, 3), length=64", "task=TaskConfig(lags=(1, 3), length=64)"),
    "model": Example("model='standard', dim=32", "model=TransformerShape(dim=32)"),
    "optimiser": Example("optimiser='soap', steps=2000", "optimiser=Adam(steps=2000)"),
    "recipe": Example("init='harmonic'", "recipe=Plain()"),
    "evaluation": Example("evaluate_every=100", "evaluation=EvaluationConfig(evaluate_every=100)"),
}
"""How each part is given, for messages."""


@dataclass(frozen=True, init=False)
class TrainConfig(Shown):
    """Describes everything a run's result depends on, apart from the machine. The defaults are the paper's.

    A field may be given by its flat name, a part as a whole, or both, the field then wins. It shows what differs from
    the defaults.

    Args:
        seed: initial weights and batches come from it.
        stored: how trained weights are written; "float16" takes half the space of "float32".
        target: what the loss compares a prediction with, at every position: the next token as "sampled", or its true
            "distribution" (`sih.truth`), which knows the lag and, with `fresh`, the sequence's own matrix.
        fields: of the parts, e.g. lags, states, length; model ("standard" or "disentangled"), heads, dim; optimiser,
            steps, batch, learning_rate; init (the recipe); evaluate_every. `config.flat()` lists all.

    >>> import sih
    >>> config = sih.TrainConfig(lags=(1, 3), model="disentangled", steps=2400)
    >>> config
    TrainConfig(model='disentangled', lags=(1, 3), steps=2400)
    >>> config.task.lags, config.model.kind, config.optimiser.batch
    ((1, 3), 'disentangled', 256)
    """

    task: TaskConfig
    model: ModelShape
    optimiser: Optimiser
    recipe: Recipe
    evaluation: EvaluationConfig
    seed: int
    stored: str
    target: str

    def __init__(
        self, *, seed: int = 0, stored: str = "float32", target: str = "sampled", **fields: Any
    ) -> None:
        check_seed("seed", seed)
        check_choice("stored", stored, STORED)
        check_choice("target", target, TARGETS)
        parts = parts_of(fields)
        check_length(parts["task"])
        parts["optimiser"] = parts["optimiser"].fit()
        parts["recipe"] = parts["recipe"].fit(
            parts["model"], parts["task"].outline(), parts["optimiser"].steps
        )
        for name, value in {**parts, "seed": seed, "stored": stored, "target": target}.items():
            object.__setattr__(self, name, value)  # the dataclass is frozen

    def _facts(self) -> Mapping[str, Any]:
        return self.unusual()

    @property
    def heads(self) -> tuple[int, ...]:
        """Return the number of heads of each layer, () for a model without attention."""
        return tuple(self.flat().get("heads", ()))

    def flat(self) -> dict[str, Any]:
        """Return every field by its flat name, with the words that chose the parts.

        >>> TrainConfig(steps=7).flat()["steps"]
        7
        """
        words = {
            "model": self.model.kind,
            "init": self.recipe.name,
            "optimiser": self.optimiser.name,
        }
        parts = [getattr(self, name) for name in PARTS]
        fields = {
            field.name: getattr(part, field.name)
            for part in parts
            for field in dataclasses.fields(part)
        }
        return {**words, **fields, **{name: getattr(self, name) for name in TOP}}

    def unusual(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, by flat name.

        >>> TrainConfig(seed=3, lags=(1, 2)).unusual()
        {'lags': (1, 2), 'seed': 3}
        """
        flat = self.flat()
        usual = {**TrainConfig(**{word: flat[word] for word in WORDS}).flat(), **WORDS}
        return {name: value for name, value in flat.items() if value != usual[name]}

    def replace(self, **changes: Any) -> "TrainConfig":
        """Return the same with some fields changed. What a newly chosen part does not have is left out.

        >>> TrainConfig(dim=32).replace(seed=1)
        TrainConfig(dim=32, seed=1)
        """
        flat, changes = self.flat(), renamed(changes)
        whole = whole_parts(changes)
        if "recipe" in whole:
            del flat["init"]
        part_of = names_of(classes_of({**flat, **changes}))
        lost = {
            name
            for name in flat
            if part_of.get(name) in whole or name not in (*part_of, *WORDS, *TOP)
        }
        return TrainConfig(
            **{**{name: value for name, value in flat.items() if name not in lost}, **changes}
        )

    def held_out_batch(self, task: LagTask) -> Batch:
        """Draw the sequences that the model is measured on, the same for all runs on one task.

        >>> config = TrainConfig(lags=(1, 2), length=16, held_out=8)
        >>> config.held_out_batch(config.task.build())
        Batch(size=8, length=16, lags={1: 3, 2: 5})
        """
        seed = HELD_OUT_SEED + self.task.matrix_seed
        return sample(task, self.evaluation.held_out, rng=torch.Generator().manual_seed(seed))


def check_length(task: TaskConfig) -> None:
    """Raise a FieldError unless some position past the first max_lag has a next token, so that KL has a mean."""
    least = task.lags[-1] + 2
    if task.length < least:
        reason = f"one next token past the first {task.lags[-1]} positions to measure KL on"
        raise FieldError(
            "length",
            f"length must be at least {least} for lags {task.lags}: {reason}; got {task.length}",
        )


def classes_of(fields: Mapping[str, Any]) -> dict[str, type]:
    """Find the class of each part of a configuration, from the words among its fields or a part given whole."""
    whole = {name: type(part) for name, part in whole_parts(fields).items()}
    words = {
        word: usual if word in whole else fields.get(word, usual) for word, usual in WORDS.items()
    }
    check_choice("model", words["model"], tuple(KINDS))
    check_choice("optimiser", words["optimiser"], tuple(OPTIMISERS))
    check_kind("init", words["init"], str, "the word for a recipe, e.g. 'harmonic'")
    shape = whole.get("model", KINDS[words["model"]].Shape)
    recipe = whole["recipe"] if "recipe" in whole else recipe_named(words["init"], shape.kind)
    optimiser = whole.get("optimiser", OPTIMISERS[words["optimiser"]])
    return dict(zip(PARTS, (TaskConfig, shape, optimiser, recipe, EvaluationConfig), strict=True))


def names_of(classes: Mapping[str, type]) -> dict[str, str]:
    """List the flat names of fields, each with the part that it belongs to."""
    return {
        field.name: part for part, kind in classes.items() for field in dataclasses.fields(kind)
    }


def renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields by their names of today, or raise a FieldError if one has two names."""
    for old, new in RENAMED.items():
        if old in fields and new in fields:
            raise FieldError(new, f"{old} is the old name of {new}; leave one out")
    return {RENAMED.get(name, name): value for name, value in fields.items()}


def whole_parts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts that are given whole, by name, or raise a FieldError for one of a wrong type.

    A word that chooses a model or an optimiser has the name of the part. It is checked where it is read.
    """
    given = {name: fields[name] for name in PARTS if name in fields}
    whole = {
        name: part for name, part in given.items() if not (name in WORDS and isinstance(part, str))
    }
    for name, part in whole.items():
        flat, example = EXAMPLES[name]
        by_fields = f"or be given by its fields, e.g. TrainConfig({flat})"
        check_kind(
            name,
            part,
            PARTS[name],
            f"of type {PARTS[name].__name__}, e.g. TrainConfig({example}), {by_fields}",
        )
    if "recipe" in whole and "init" in fields:
        raise FieldError(
            "init", "init is the word for a recipe, and recipe is one given whole; leave one out"
        )
    return whole


def parts_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make the parts of a configuration from fields by their flat names, words that choose, and whole parts."""
    classes = classes_of(fields)
    part_of = names_of(classes)
    given: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
    for name, value in renamed(fields).items():
        if name in part_of:
            given[part_of[name]][name] = _frozen(value)
        elif name not in (*PARTS, *WORDS):
            known = ", ".join(sorted((*part_of, *WORDS, *TOP)))
            raise FieldError(
                name, f"a training configuration has no field {name!r}; it has {known}"
            )
    whole = whole_parts(fields)
    made = {part: classes[part](**given[part]) for part in PARTS if part not in whole}
    return {
        part: made[part] if part in made else dataclasses.replace(whole[part], **given[part])
        for part in PARTS
    }


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
