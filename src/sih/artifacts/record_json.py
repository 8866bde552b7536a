"""Data of an experiment as plain JSON and back, so that a figure can be drawn from a file alone."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any, Self, get_args, get_origin, get_type_hints


class Saved:
    """A dataclass of numbers, words, lists, tuples, dictionaries and further such dataclasses."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """What `to_dict` gave, also after a way through JSON, which has lists for tuples."""
        found: Self = restored(cls, values)
        return found


def restored(kind: Any, value: Any) -> Any:
    """A value as its annotation has it.

    >>> restored(tuple[tuple[int, ...], ...], [[1, 2], [3]])
    ((1, 2), (3,))
    >>> restored(dict[str, tuple[float, float]], {"ML": [0.5, 0.1]})
    {'ML': (0.5, 0.1)}
    """
    if value is None:
        return None
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return kind(**{name: restored(hints[name], entry) for name, entry in value.items()})
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(restored(one, entry) for one, entry in zip(kinds, value, strict=True))
    if origin is list:
        return [restored(args[0], entry) for entry in value]
    if origin is dict:
        return {name: restored(args[1], entry) for name, entry in value.items()}
    return value
