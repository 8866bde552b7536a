"""Flags of `sih construct`: one per option of a circuit, for lags or any parents."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import docstring_parser
import tyro

from sih.beyond.any_parents import PARENTS_CIRCUITS
from sih.circuits import CIRCUITS
from sih.circuits.any_circuit import AnyCircuit
from sih.circuits.circuit_table import RELATIVE

AUTO = "auto"
"""The word for a choice left to the circuit."""


def circuits() -> Iterator[tuple[str, type[AnyCircuit]]]:
    """Yield every circuit, with its name in a flag's help."""
    yield from CIRCUITS.items()
    for target, relative in RELATIVE.items():
        yield f"{target} of --kind relative", relative
    for target, kind in PARENTS_CIRCUITS.items():
        yield f"{target} of --parents", kind


def with_circuit_flags(command: Callable[..., int]) -> Callable[..., int]:
    """Return the command with one flag per option in place of its `**options`."""
    signature, hints = inspect.signature(command), get_type_hints(command, include_extras=True)
    own = list(signature.parameters.values())[:-1]
    before = [each.name for each in own].index("readout")
    flags = list(circuit_flags())
    parameters = [*own[:before], *flags, *own[before:]]
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]

    def with_flags(**given: Any) -> int:
        return command(**given)

    with_flags.__doc__, with_flags.__name__ = command.__doc__, command.__name__
    annotations = {name: kind for name, kind in hints.items() if name != "options"}
    annotations.update((each.name, each.annotation) for each in flags)
    annotations["target"] = tyro.extras.literal_type_from_choices(CIRCUITS)
    with_flags.__annotations__ = annotations
    resolved = [each.replace(annotation=annotations[each.name]) for each in keywords]
    with_flags.__signature__ = signature.replace(parameters=resolved)  # type: ignore[attr-defined]
    return with_flags


def circuit_flags() -> Iterator[inspect.Parameter]:
    """Yield one parameter per option of a circuit, with the circuits that have it in
    its help.

    None leaves a choice to the circuit. An option that is off by default is a flag
    without a value; one that is on takes True or False. If a circuit can choose among
    words itself, `AUTO` is one more word. Options for Python alone have no flag.
    """
    for name, kinds in options_by_name().items():
        words = [word for kind in kinds.values() for word in choices(kind.hint)]
        plain = {each for kind in kinds.values() for each in kinds_of(kind.hint)} - {NoneType}
        default: Any = None
        annotation: Any
        if words:
            chosen = all(kind.default is None for kind in kinds.values())
            default = AUTO if chosen else None
            listed = tuple(dict.fromkeys([AUTO, *words] if chosen else words))
            annotation = Literal[listed] if chosen else Literal[listed] | None
        elif bool in plain and not any(kind.default for kind in kinds.values()):
            annotation, default = bool, False
        elif plain <= {bool, int, float}:
            (one,) = plain
            annotation = one | None
        else:
            continue
        text = helped({target: kind.help for target, kind in kinds.items()})
        flag = Annotated[annotation, tyro.conf.arg(help=text)]
        yield inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=flag
        )


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of one circuit: its type, its default and its docstring."""

    hint: Any
    default: Any
    help: str


def options_by_name() -> dict[str, dict[str, Option]]:
    """Return each option by name, and by the circuits that have it."""
    found: dict[str, dict[str, Option]] = {}
    for target, kind in circuits():
        hints = get_type_hints(kind.Options)
        texts = docstring_parser.parse_from_object(kind.Options).params
        text = {each.arg_name: " ".join((each.description or "").split()) for each in texts}
        for each in dataclasses.fields(kind.Options):
            by_default = "" if each.default in (None, False) else f" Default: {word(each.default)}."
            option = Option(hints[each.name], each.default, text[each.name] + by_default)
            found.setdefault(each.name, {})[target] = option
    return found


def word(value: Any) -> str:
    """Return a default as users write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def choices(hint: Any) -> tuple[str, ...]:
    """Return the words that an option may be, if it is a choice of words."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(word for part in get_args(hint) for word in choices(part))


def kinds_of(hint: Any) -> tuple[Any, ...]:
    """Return the types in a union."""
    return get_args(hint) or (hint,)


def helped(texts: Mapping[str, str]) -> str:
    """Return the help of a flag: the circuits' docstrings, each with their names unless
    all are the same.
    """
    by_text: dict[str, list[str]] = {}
    for target, text in texts.items():
        by_text.setdefault(text, []).append(target)
    return " ".join(f"({', '.join(who)}) {text}" for text, who in by_text.items())


def given_options(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that flags set: `AUTO` and an unset flag leave the choice to
    the circuit.
    """
    return {
        name: None if (value is False and is_switch(name)) or value == AUTO else value
        for name, value in flags.items()
    }


def is_switch(name: str) -> bool:
    """Return whether an option is a flag without a value."""
    return any(flag.name == name and flag.default is False for flag in circuit_flags())
