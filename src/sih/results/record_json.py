"""A dataclass as plain JSON values and back, so that data can be read, and drawn, from a file alone.

Its fields are numbers, words, None, lists, tuples, dictionaries by words, and further such dataclasses.
"""

import json
from dataclasses import asdict, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

D = TypeVar("D")


def plain(record: object) -> dict[str, Any]:
    """Give the record as JSON has it, with lists for tuples: what a file gives back is equal to it."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(cast(Any, record))))
    return values


def record_from(kind: type[D], values: dict[str, Any]) -> D:
    """Make the record of this type again of which `plain` made the values."""
    return cast(D, _restored(kind, values))


def _restored(kind: Any, value: Any) -> Any:
    """Give a value the type that its annotation says.

    >>> _restored(tuple[tuple[int, ...], ...], [[1, 2], [3]])
    ((1, 2), (3,))
    >>> _restored(dict[str, tuple[float, float] | None], {"ML": [0.5, 0.1], "BMA": None})
    {'ML': (0.5, 0.1), 'BMA': None}
    """
    if value is None:
        return None
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{name: _restored(hints[name], entry) for name, entry in value.items()})
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (other,) = (one for one in args if one is not NoneType)
        return _restored(other, value)
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(_restored(one, entry) for one, entry in zip(kinds, value, strict=True))
    if origin is list:
        return [_restored(args[0], entry) for entry in value]
    if origin is dict:
        return {name: _restored(args[1], entry) for name, entry in value.items()}
    return value
