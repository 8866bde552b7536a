"""Every public name says what it does: a sentence with a verb, its options, and an example that runs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sih
from sih.models.base import Model
from sih.task import CausalTask

VERBS = re.findall(
    r"\w+",
    """
    add assign average bracket choose collect compare compute count describe divide draw
    estimate fill find follow give hold infer list load look make measure name open patch
    predict read return run save say score show solve split take tabulate tell test train
    turn weigh write
    """,
)
INNER = {
    **dict.fromkeys(
        ("equations", "fast", "named_values", "count_weights", "make_weights", "draw"),
        "what a kind of model has to write",
    ),
    **dict.fromkeys(("choose_path", "usual_path"), "which of several ways to compute is taken"),
    "forward": "what calling a model does; `Model` has the example",
    "get_submodule": "torch's own",
}
"""Methods that need no example of their own, and why."""


def _members(cls: type) -> Iterator[tuple[str, Any, type]]:
    for name in dir(cls):
        home = next((base for base in cls.__mro__ if name in vars(base)), object)
        if not name.startswith("_") and home.__module__.startswith("sih."):
            yield name, vars(home)[name], home


FUNCTIONS = [name for name in sih.__all__ if inspect.isfunction(getattr(sih, name))]
CLASSES = [name for name in sih.__all__ if inspect.isclass(getattr(sih, name))]
METHODS = sorted(
    {
        (f"{home.__module__}:{home.__qualname__}.{name}", value, home)
        for cls in CLASSES
        for name, value, home in _members(getattr(sih, cls))
        if inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)
    },
    key=lambda found: found[0],
)
PROPERTIES = sorted(
    {
        (f"{home.__qualname__}.{name}", value)
        for cls in CLASSES
        for name, value, home in _members(getattr(sih, cls))
        if isinstance(value, property) or type(value).__name__ == "cached_property"
    },
    key=lambda found: found[0],
)


def test_every_public_name_is_a_function_or_a_class() -> None:
    assert sorted([*FUNCTIONS, *CLASSES]) == sorted(sih.__all__)


@pytest.mark.parametrize("name", sih.__all__)
def test_a_public_name(name: str) -> None:
    found = getattr(sih, name)
    doc = inspect.getdoc(found)
    assert doc
    check_sentence(doc, of_class=inspect.isclass(found))
    check_options(found, doc)
    assert ">>> " in doc


@pytest.mark.parametrize(("name", "method", "home"), METHODS, ids=[name for name, _, _ in METHODS])
def test_a_public_method(name: str, method: Any, home: type) -> None:
    function: Callable[..., Any] = getattr(method, "__func__", method)
    short = name.rpartition(".")[2]
    bases = (
        *home.__mro__[1:],
        CausalTask,
    )  # a task's members are those of the protocol, which explains them
    docs = [
        inspect.getdoc(function),
        *(inspect.getdoc(vars(base)[short]) for base in bases if short in vars(base)),
    ]
    doc = next(filter(None, docs), None)
    assert doc, f"{name} says nothing"
    if short == "get_submodule":
        return
    check_sentence(doc)
    check_options(function, doc)
    where = [
        doc,
        *(
            inspect.getdoc(base) or ""
            for base in home.__mro__
            if base.__module__.startswith("sih.")
        ),
    ]
    called = any(re.search(rf">>> .*\.{short}\(|\.\.\. .*\.{short}\(", text) for text in where)
    assert called or short in INNER or short in vars(CausalTask), (
        f"{name} has no example, nor has its class one that calls it"
    )


@pytest.mark.parametrize(("name", "value"), PROPERTIES, ids=[name for name, _ in PROPERTIES])
def test_a_public_property(name: str, value: Any) -> None:
    doc = inspect.getdoc(value)
    assert doc, f"{name} says nothing"
    check_sentence(doc)


def check_sentence(doc: str, *, of_class: bool = False) -> None:
    """Check that a function's first sentence begins with a verb, and a class's with a noun phrase."""
    first = re.split(r"\.(?=\s|$)", doc.partition("\n\n")[0])[0]
    word = first.split()[0].lower()
    if of_class:
        verbs = {*VERBS, *(f"{verb}s" for verb in VERBS), "says", "carries", "does"}
        assert word not in verbs, f"a verb begins {first!r}"
    else:
        assert word in VERBS, f"no verb begins {first!r}"
    assert ";" not in first


def check_options(function: Callable[..., Any], doc: str) -> None:
    """Check that more than one option means a section Args that explains each."""
    parameters = inspect.signature(function).parameters.values()
    options = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY or p.default is not p.empty]
    section = doc.partition("\nArgs:\n")[2].partition("\n\n")[0]
    if len(options) > 1:
        assert [
            name for name in options if not re.search(rf"^\s+{name}: \S", section, re.MULTILINE)
        ] == []


def test_the_checks_can_fail() -> None:
    with pytest.raises(AssertionError, match="no verb"):
        check_sentence("The law of the next token.")
    with pytest.raises(AssertionError, match="a verb"):
        check_sentence("Holds what was found.", of_class=True)

    def two(a: int, *, b: int = 0, c: int = 0) -> None: ...

    with pytest.raises(AssertionError):
        check_options(two, "Do it.\n\nArgs:\n    b: one.\n")
    check_options(two, "Do it.\n\nArgs:\n    b: one.\n    c: another.\n")


def test_help_shows_what_a_model_takes() -> None:
    assert list(inspect.signature(sih.Transformer).parameters)[:3] == [
        "num_states",
        "length",
        "dim",
    ]
    assert issubclass(sih.Transformer, Model)
