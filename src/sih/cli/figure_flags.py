"""Flags of `sih figure NAME`: one per field of the figure's configuration.

One rule holds for all figures. Flags have the names of fields, except for the words
that all commands share (`FLAGS`). A field with several entries, such as sets of lags,
gets a single one.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import docstring_parser
import tyro

from sih.base.errors import FieldError
from sih.results.cache import store_of
from sih.results.experiment import no_models
from sih.results.figure import Figure
from sih.results.tables import braces
from sih.training.runs.run_store import RunStore

FLAGS = {"num_states": "states", "lag_sets": "lags", "laws": "matrix_law"}
"""The flags that all commands use for these fields."""
ONE = {"lag_sets": "one set of lags instead of", "laws": "one distribution instead of"}
"""Fields with several entries; a flag gives a single one."""
HELP = {
    "lags": "the lag set, increasing",
    "length": "tokens of a sequence",
    "lengths": "of the sequences",
    "matrices": "random matrices",
    "sequences": "sequences of each matrix",
    "num_states": "number of states",
    "matrix_law": "how matrices are drawn",
    "concentration": "of Dirichlet rows",
    "true_lag": "the lag that makes the sequence",
    "models": "trained models by name or folder, instead of the figure's own",
}
"""The help of fields by name, if their configuration has none."""
PLACES = ("--out", "--runs")
"""Flags of every figure that are followed by a value."""


def figure_in(words: Sequence[str], names: Mapping[str, object]) -> str | None:
    """Return the figure that a command line names, or the first word if it names none."""
    free = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if not word.startswith("-") and before not in PLACES
    ]
    known = next((word for word in free if word in names), None)
    return known or next((word for word in free if word == words[0]), None)


def with_figure_flags(command: Callable[..., None], config: Any) -> Callable[..., None]:
    """Return the command with one flag per field of a figure's configuration, if it is
    for one.
    """
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    own = [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in signature.parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    flags = [] if config is None else list(flags_of(config))

    def with_flags(**given: Any) -> None:
        command(**given)

    with_flags.__doc__, with_flags.__name__ = command.__doc__, command.__name__
    with_flags.__annotations__ = {each.name: each.annotation for each in (*own, *flags)}
    with_flags.__signature__ = signature.replace(parameters=[*own, *flags])  # type: ignore[attr-defined]
    return with_flags


def flags_of(config: Any) -> Iterator[inspect.Parameter]:
    """Yield one parameter per field that is a number, a word or a list of them."""
    texts = helped(type(config))
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if name in ONE:
            listed = ", ".join(map(braces, value)) if name == "lag_sets" else " and ".join(value)
            (hint, _), value = get_args(hint), None
            kind, text = hint | None, f"{ONE[name]} {listed}."
        elif get_origin(hint) is tuple and get_origin(get_args(hint)[0]) is tuple:
            continue
        else:
            kind, text = hint, texts[name]
        annotation: Any = Annotated[kind, tyro.conf.arg(help=text)]
        flag = FLAGS.get(name, name)
        yield inspect.Parameter(
            flag, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=annotation
        )


def helped(kind: type) -> dict[str, str]:
    """Return the help of each field of a configuration: its docstring, or that of its
    name.
    """
    found = {}
    for one in reversed(kind.__mro__[:-1]):
        for each in docstring_parser.parse_from_object(one).params:
            found[each.arg_name] = " ".join((each.description or "").split())
    names = (field.name for field in dataclasses.fields(kind))
    return {name: found.get(name) or HELP.get(name, name.replace("_", " ")) for name in names}


def asked(figure: Figure[Any], given: Mapping[str, Any]) -> Figure[Any]:
    """Return the figure of the task in the flags, under its own name if it is another
    task.

    A value that makes no sense raises a FieldError about its flag.
    """
    fields = {
        FLAGS.get(name, name): name for name in get_type_hints(type(figure.experiment.config))
    }
    changes = {}
    for flag, value in given.items():
        name = fields[flag]
        if name not in ONE:
            changes[name] = value
        elif value is not None:
            changes[name] = (value,)
    try:
        return figure.asking(**changes)
    except FieldError as error:
        name = error.field.partition(".")[0]
        flag = FLAGS.get(name, name)
        raise FieldError(flag, re.sub(rf"^{re.escape(name)}[.\d]*", flag, str(error))) from error


def check_has_models(figure: Figure[Any], paper: Figure[Any], store: RunStore) -> None:
    """Raise a ValueError if a figure of trained models is for a task without trained
    models.
    """
    one = figure.experiment
    if figure is paper or one.reads is no_models:
        return
    runs, missing = store_of(one, store).finished(one.reads(one.config, store))
    if missing or any(_fits(one.config, run.task) for run in runs.values()):
        return
    raise ValueError(
        f"figure {paper.name} shows trained models, and none of its models is trained for {task_of(one.config)}; "
        "`sih models` lists those that ship"
    )


def _fits(config: Any, task: Any) -> bool:
    """Return whether a model's task fits the configuration, as far as it sets one."""
    wanted: dict[str, Any] = {"lags": lag_sets_of(config)}
    wanted |= {
        name: [getattr(config, name)] for name in ("num_states", "length") if hasattr(config, name)
    }
    return all(getattr(task, name) in values for name, values in wanted.items() if values)


def lag_sets_of(config: Any) -> tuple[tuple[int, ...], ...]:
    """Return the lag sets of a configuration, none if it has no lags."""
    alone = (config.lags,) if hasattr(config, "lags") else ()
    return getattr(config, "lag_sets", alone)


def task_of(config: Any) -> str:
    """Return the task of a configuration in words."""
    words = [f"lags {', '.join(map(braces, lag_sets_of(config)))}"] if lag_sets_of(config) else []
    words += [f"{config.num_states} states"] if hasattr(config, "num_states") else []
    words += [f"length {config.length}"] if hasattr(config, "length") else []
    return ", ".join(words) or "it"
