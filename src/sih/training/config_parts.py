"""Parts of a training configuration, made from fields in one place.

Fields come from Python's callers, flags, presets, sweeps and files. Each has a flat
name, in whatever part it is. A part may also be given whole. A given field takes effect
or is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sih.base.errors import FieldError, check_choice, check_kind
from sih.base.record import Size, check, field_names, make
from sih.models import KINDS, ModelShape
from sih.task import CausalTask
from sih.training.optimiser import OPTIMISERS, Optimiser
from sih.training.recipes import Recipe, recipe_named
from sih.training.recipes.recipe import Fields as Fields
from sih.training.task_config import OwnTask, Sequences, TaskConfig

CHOICES = {"model": "standard", "init": "uniform", "optimiser": "adam"}
"""The words that choose a kind of model, a recipe and an optimiser, with their
defaults."""
RUN_FIELDS = ("seed", "stored", "target")
"""Fields that belong to no part."""
RENAMED = {"held": "frozen_steps", "shorter": "length_schedule"}
"""Old names of fields, still read in files and flags."""


@dataclass(frozen=True)
class EvaluationConfig:
    """When and on how many sequences a model is measured while it is trained."""

    evaluate_every: Size = 250
    """Steps between two evaluations on the held-out sequences; another follows the last
    step."""
    held_out: Size = 512
    """Number of held-out sequences. Every evaluation uses the same ones."""

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class Part:
    """A part of a configuration: the classes it may have, and examples of it."""

    kind: type
    flat: str
    """An example of its fields by their flat names."""
    whole: str
    """An example of the part as a whole."""
    word: str = ""
    """The flat name of the word that chooses its class, if there are several."""
    tag: str = ""
    """The word's name in the class and in JSON."""

    @property
    def wanted(self) -> str:
        """Return the description of the part in messages."""
        by_fields = f"or be given by its fields, e.g. TrainConfig({self.flat})"
        return f"of type {self.kind.__name__}, e.g. TrainConfig({self.whole}), {by_fields}"


SECTIONS = {
    "task": Part(TaskConfig, "lags=(1, 3), length=64", "task=TaskConfig(lags=(1, 3), length=64)"),
    "model": Part(
        ModelShape, "model='standard', dim=32", "model=TransformerShape(dim=32)", "model", "kind"
    ),
    "optimiser": Part(
        *(Optimiser, "optimiser='soap', steps=2000", "optimiser=Adam(steps=2000)"),
        *("optimiser", "name"),
    ),
    "recipe": Part(Recipe, "init='harmonic'", "recipe=Plain()", "init", "name"),
    "evaluation": Part(
        EvaluationConfig, "evaluate_every=100", "evaluation=EvaluationConfig(evaluate_every=100)"
    ),
}
"""The parts of a configuration, in the order of its files."""


def parts_of(fields: Fields, base: Fields) -> dict[str, Any]:
    """Return the checked parts of a configuration from unfolded fields.

    `base` has fields of less weight, those of a preset for example. They count where no
    field is given, and where the chosen parts have them.
    """
    classes = classes_of({**base, **fields})
    known = {name for kind in classes.values() for name in field_names(kind)}
    for name in fields:
        if name not in (*known, *SECTIONS, *CHOICES, *RUN_FIELDS):
            there = ", ".join(sorted((*known, *CHOICES, *RUN_FIELDS)))
            says = f"a training configuration has no field {name!r}"
            raise FieldError(name, f"{says}; it has {there}")
    return {part: _part(part, kind, fields, base) for part, kind in classes.items()}


def _part(part: str, kind: type, fields: Fields, base: Fields) -> Any:
    """Return a part of this class, made from its fields."""
    names = field_names(kind)
    given = {name: fields[name] for name in names if name in fields}
    if _is_whole(part, fields):
        whole = fields[part]
        return make(kind, {**vars(whole), **given}) if given else whole
    usual = {name: base[name] for name in names if name in base}
    return make(kind, {**usual, **given})


def classes_of(fields: Fields) -> dict[str, type]:
    """Return the class of each part, from the part itself or from the word that chooses
    it.
    """
    task = OwnTask if "own" in fields else TaskConfig
    chosen: dict[str, type] = {"task": task, "evaluation": EvaluationConfig}
    found = {part: type(fields[part]) for part in SECTIONS if _is_whole(part, fields)}
    chosen["model"] = shape = shape_of(fields)
    if "optimiser" not in found:
        word = fields.get("optimiser", CHOICES["optimiser"])
        check_choice("optimiser", word, tuple(OPTIMISERS))
        chosen["optimiser"] = OPTIMISERS[word]
    if "recipe" not in found:
        word = fields.get("init", CHOICES["init"])
        check_kind("init", word, str, "the word for a recipe, e.g. 'harmonic'")
        chosen["recipe"] = recipe_named(word, shape.kind)
    return {part: {**chosen, **found}[part] for part in SECTIONS}


def shape_of(fields: Fields) -> type[ModelShape]:
    """Return the class of the model's shape, from the shape itself or from the kind's
    word.
    """
    model = fields.get("model", CHOICES["model"])
    if isinstance(model, ModelShape):
        return type(model)
    check_choice("model", model, tuple(KINDS))
    return KINDS[model].Shape


def _is_whole(part: str, fields: Fields) -> bool:
    is_word = SECTIONS[part].word == part and isinstance(fields.get(part), str)
    return part in fields and not is_word


def unfolded(fields: Fields) -> dict[str, Any]:
    """Return fields by their current names, and parts in the form in which they are
    kept.

    Fields that are given twice, and parts of a wrong type, are refused.
    """
    for old, new in RENAMED.items():
        if old in fields and new in fields:
            raise FieldError(new, f"{old} is the old name of {new}; leave one out")
    found = {RENAMED.get(name, name): value for name, value in fields.items()}
    for part in SECTIONS:
        if _is_whole(part, found):
            found[part] = _whole(part, found[part])
    if "recipe" in found and "init" in found:
        says = "init is the word for a recipe, and recipe is one given whole"
        raise FieldError("init", f"{says}; leave one out")
    return found


def _whole(part: str, value: object) -> Any:
    """Return a part that was given whole. A task of one's own is replaced by its
    description.
    """
    if part != "task":
        check_kind(part, value, SECTIONS[part].kind, SECTIONS[part].wanted)
        return value
    if isinstance(value, CausalTask) and not isinstance(value, type):
        return OwnTask(Sequences.of(value))
    wanted = f"{SECTIONS[part].wanted}, or any task, e.g. TrainConfig(task=sih.Task(...))"
    check_kind(part, value, (TaskConfig, OwnTask), wanted)
    return value
