"""Checked dataclasses: annotations give the allowed values, errors name the field.

    @dataclass(frozen=True)
    class Matrix:
        rows: tuple[tuple[Annotated[float, Between(0, 1)], ...], ...]

        def __post_init__(self) -> None:
            check(self)

    read(Matrix, {"rows": [[0.5, 1.5]]}, "state.matrix")
    FieldError: state.matrix.rows.0.1 must be a number from 0 to 1; got 1.5

A field is a str, bool, int, float, Literal, tuple, dict, dataclass, tensor or Any, or
one of these and None. `check` in a `__post_init__` applies the same checks to values
from Python, files and flags. Numbers become plain: 1 given for a float is 1.0, NumPy's
numbers are Python's. In one record, axes of tensors with the same name have the same
size.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as type_hints

import jaxtyping
from jaxtyping import AbstractArray

from sih.base.errors import FieldError, described

T = TypeVar("T")

PLAIN: dict[Any, tuple[type, str]] = {
    str: (str, "text"),
    bool: (bool, "true or false"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    Any: (object, "anything"),
}
"""Kinds without parts: the class that a value must have, and its name in errors."""


@dataclass(frozen=True)
class Between:
    """The numbers from `least` to `most`, both allowed."""

    least: float
    most: float

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most

    def wanted(self, noun: str) -> str:
        return f"{noun} from {_short(self.least)} to {_short(self.most)}"


@dataclass(frozen=True)
class AtLeast:
    """The numbers from `least` on."""

    least: float

    def __contains__(self, value: float) -> bool:
        return self.least <= value

    def wanted(self, noun: str) -> str:
        return f"{noun}, at least {_short(self.least)}"


@dataclass(frozen=True)
class Above:
    """The finite numbers greater than `least`, and infinity if it is allowed."""

    least: float
    infinite: bool = False

    def __contains__(self, value: float) -> bool:
        return self.least < value and (self.infinite or value < math.inf)

    def wanted(self, noun: str) -> str:
        end = ", or inf" if self.infinite else ", and finite"
        return f"{noun} greater than {_short(self.least)}{end}"


@dataclass(frozen=True)
class Below:
    """The numbers less than `most`."""

    most: float

    def __contains__(self, value: float) -> bool:
        return value < self.most

    def wanted(self, noun: str) -> str:
        return f"{noun} below {_short(self.most)}"


@dataclass(frozen=True, eq=False)
class Among:
    """The words of a list, or of a table that may grow."""

    words: Collection[str]

    def __contains__(self, value: str) -> bool:
        return value in self.words

    def wanted(self, noun: str) -> str:
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True)
class NotEmpty:
    """The lists that are not empty. `content` describes entries, with an example."""

    content: str

    def __contains__(self, value: tuple[Any, ...]) -> bool:
        return len(value) > 0

    def wanted(self, noun: str) -> str:
        return self.content


@dataclass(frozen=True)
class Increasing:
    """The lists of one number or more, each greater than the one before it."""

    def __contains__(self, value: tuple[float, ...]) -> bool:
        return len(value) > 0 and all(a < b for a, b in itertools.pairwise(value))

    def wanted(self, noun: str) -> str:
        return "distinct, positive and increasing whole numbers, e.g. (1, 2, 3)"


@dataclass(frozen=True)
class OneOrMore:
    """The lists of one word or more; a word alone is a list of one."""

    def __contains__(self, value: tuple[Any, ...]) -> bool:
        return len(value) > 0

    def wanted(self, noun: str) -> str:
        return "a word, or a list of words"


Size = Annotated[int, AtLeast(1), Below(2**31)]
Count = Annotated[int, AtLeast(0), Below(2**31)]
Probability = Annotated[float, Between(0, 1)]
SeedNumber = Annotated[int, AtLeast(0), Below(2**62)]
"""A seed for torch's generators, small enough that other seeds can be added to it."""


def read(kind: type[T], value: object, name: str) -> T:
    """Return the value as `kind`, or raise a `FieldError`; `name` is its place."""
    return _read(kind, value, name)  # type: ignore[no-any-return]


def read_field(record: Any, name: str, value: object) -> Any:
    """Return the value as this field of a dataclass, or raise a `FieldError`."""
    return _read(kinds_of(record)[name], value, name)


def make(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the dataclass with these fields, or raise a `FieldError`."""
    for name in required_fields(kind):
        if name not in values:
            says = f"{name} is missing, without which there is no {kind.__name__}"
            raise FieldError(name, says)
    return kind(**_entries(kind, values))


def check(record: Any) -> None:
    """Raise a `FieldError` unless a dataclass agrees with its annotations."""
    own: Any = type(record)
    values = {name: getattr(record, name) for name in kinds_of(own)}
    for name, value in _entries(own, values).items():
        object.__setattr__(record, name, value)


def to_json(value: Any) -> Any:
    """Return the value as plain JSON, for `read` to read again.

    A dataclass is an object of its fields. Fields that are not compared are left out,
    such as a task that is stored beside its description.
    """
    if dataclasses.is_dataclass(value):
        return {name: to_json(getattr(value, name)) for name in field_names(type(value))}
    if isinstance(value, Mapping):
        return {key: to_json(entry) for key, entry in value.items()}
    return [to_json(item) for item in value] if isinstance(value, tuple) else value


def field_names(record: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields, without those that are not compared."""
    return tuple(field.name for field in dataclasses.fields(record) if field.compare)


def required_fields(record: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields that have no default."""
    fields = dataclasses.fields(record)
    has_none = (MISSING, MISSING)
    return tuple(f.name for f in fields if (f.default, f.default_factory) == has_none)


@functools.cache
def kinds_of(record: Any) -> dict[str, Any]:
    """Return the annotation of each field of a dataclass, by its name."""
    hints = type_hints(record, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(record)}


def _entries(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    kinds = kinds_of(kind)
    with jaxtyping.jaxtyped("context"):  # sizes of axes, by name
        return {name: _read(kinds[name], value, name) for name, value in values.items()}


def _read(kind: Any, value: Any, name: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, name)
    if isinstance(kind, type) and issubclass(kind, AbstractArray):
        return _tensor(kind, value, name)
    reader = READERS.get(get_origin(kind), _plain)
    return reader(kind, value, name)


def _plain(kind: Any, value: Any, name: str) -> Any:
    if not _fits(kind, value):
        _refuse(name, PLAIN[kind][1], value)
    if kind is float:
        return float(value) + 0.0  # one form for 0.0 and -0.0, which are equal
    return int(value) if kind is int else value


def _fits(kind: Any, value: Any) -> bool:
    is_kind = isinstance(value, PLAIN[kind][0])
    if kind is int:
        return is_kind and not isinstance(value, bool)
    if kind is float:
        return is_kind and not isinstance(value, bool) and _is_float(value)
    return is_kind


def _is_float(value: Any) -> bool:
    """Return whether a real number is not NaN and not too large for a float."""
    try:
        return not math.isnan(float(value))
    except OverflowError:
        return False


def _tensor(kind: Any, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        _refuse(name, f"numbers ({kind.__name__})", value)
    return value


def _limited(kind: Any, value: Any, name: str) -> Any:
    base, *limits = get_args(kind)
    if isinstance(value, str) and OneOrMore() in limits:
        value = (value,)
    if base in PLAIN and not _fits(base, value):
        _refuse(name, limits[0].wanted(PLAIN[base][1]), value)
    found = _read(base, value, name)
    for limit in limits:
        if found not in limit:
            noun = PLAIN[base][1] if base in PLAIN else "a list"
            _refuse(name, limit.wanted(noun), value)
    return found


def _literal(kind: Any, value: Any, name: str) -> Any:
    words = get_args(kind)
    if type(value) not in map(type, words) or value not in words:
        listed = ", ".join(map(str, words))
        _refuse(name, listed if len(words) == 1 else f"one of {listed}", value)
    return value


def _or_none(kind: Any, value: Any, name: str) -> Any:
    (other,) = (each for each in get_args(kind) if each is not NoneType)
    return None if value is None else _read(other, value, name)


def _tuple(kind: Any, value: Any, name: str) -> tuple[Any, ...]:
    items = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(items, list | tuple | range):
        _refuse(name, "a list", value)
    items = tuple(items)
    kinds = get_args(kind)
    if kinds[-1] is Ellipsis:
        kinds = kinds[:1] * len(items)
    if len(items) != len(kinds):
        _refuse(name, f"a list of {len(kinds)}", value)
    each = zip(kinds, items, strict=True)
    return tuple(_read(one, item, f"{name}.{n}") for n, (one, item) in enumerate(each))


def _dict(kind: Any, value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(name, "an object", value)
    word, entry_kind = get_args(kind)
    return {
        _read(word, key, f"a key of {name}"): _read(entry_kind, entry, f"{name}.{key}")
        for key, entry in value.items()
    }


def _record(kind: Any, value: Any, name: str) -> Any:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        _refuse(name, "an object", value)
    kinds = kinds_of(kind)
    for key in value:
        if key not in kinds:
            place = f"{name}.{key}"
            raise FieldError(place, f"{place} is no field; there are {', '.join(kinds)}")
    try:
        return make(kind, value)
    except ValueError as error:
        field, says = getattr(error, "field", ""), str(error)
        starts_with_field = bool(field) and says.startswith(field)
        place = f"{name}.{field}" if field else name
        raise FieldError(place, f"{name}{'.' if starts_with_field else ': '}{says}") from error


def _refuse(name: str, wanted: str, value: object) -> NoReturn:
    raise FieldError(name, f"{name} must be {wanted}; got {described(value)}")


def _short(number: float) -> str:
    """Return a number in its usual form: 2^31 for 2147483648."""
    power = round(math.log2(number)) if number >= 2**20 else 0
    return f"2^{power}" if power and number == 2**power else f"{number:g}"


READERS = {
    Annotated: _limited,
    Literal: _literal,
    Union: _or_none,
    UnionType: _or_none,
    tuple: _tuple,
    dict: _dict,
}
