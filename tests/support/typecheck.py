"""The checker behind jaxtyping's import hook: beartype for every type, and the shapes of a call compared.

Where no annotation has a shape there is nothing to compare, and where one has, the call is a context of its own.
jaxtyping's own decorator binds the arguments of every call again, for its messages: that took more than half of the
suite's time. It stays for classes and generators.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

checked = beartype(
    conf=BeartypeConf(is_pep484_tower=True)
)  # an int is welcome where a float is asked for
_decorate = jaxtyping.jaxtyped


def jaxtyped(thing: Any = None, /, *, typechecker: Any = None) -> Any:
    """Decorate as jaxtyping does, but functions with what they need alone."""
    if thing is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if thing == "context":
        return _decorate("context")
    if isinstance(thing, type) or inspect.isgeneratorfunction(thing):
        return _decorate(thing, typechecker=typechecker)
    with_types = checked(thing)
    return (
        _compared(with_types)
        if any(map(_has_shape, thing.__annotations__.values()))
        else with_types
    )


def _compared(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **words: Any) -> Any:
        with _decorate("context"):  # in which an axis has one size
            return function(*args, **words)

    return call


def _has_shape(annotation: Any) -> bool:
    """Tell whether a shape is in an annotation; a string may hold one."""
    if isinstance(annotation, str | typing.TypeVar):
        return True
    if isinstance(annotation, type) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(_has_shape, typing.get_args(annotation)))


jaxtyping.jaxtyped = jaxtyped  # type: ignore[assignment]  # what the hook decorates with
