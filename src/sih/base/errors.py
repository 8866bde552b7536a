"""Checks that several packages share, and their error, which names the field."""

import functools
import math
import os
import reprlib
import types
import typing
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sih.base.types import Seed, Tokens

WORDS = 624
"""32-bit numbers in the state of the Mersenne Twister, torch's generator on the CPU."""
FIRST_WORD = 24
"""Byte at which the numbers begin in `torch.Generator.get_state()`, each as a 64-bit
number."""
DTYPES = {"float32": torch.float32, "float64": torch.float64}


INSTALL = "pip install '.[{extra}]'"
"""Command that installs an extra, in a clone: the package has no public address."""


class FieldError(ValueError):
    """An invalid value: one line on the fault, and in `field` the name of the value."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(" ".join(message.split()))  # a value in the message may have several lines
        self.field = field

    def __reduce__(self) -> tuple[type["FieldError"], tuple[str, str]]:
        return type(self), (
            self.field,
            str(self),
        )  # lets it pass from a worker process to its parent


def check_sizes(**sizes: int) -> None:
    """Raise a FieldError unless every size is a whole number of at least 1."""
    for name, value in sizes.items():
        if not is_whole(value) or not 1 <= value < 2**31:
            most = " and below 2^31" if isinstance(value, int) and value >= 2**31 else ""
            raise FieldError(
                name, f"{name} must be a whole number, at least 1{most}; got {described(value)}"
            )


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number. True and False are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """Raise a FieldError unless the value is of that kind.

    `wanted` describes the kind in the message.
    """
    if not isinstance(value, kind):
        raise FieldError(name, f"{name} must be {wanted}; got {described(value)}")


def check_number(name: str, value: float, least: float = -math.inf, *, wanted: str) -> None:
    """Raise a FieldError unless the value is a number, `least` or more."""
    fits = isinstance(value, float | np.number) or (type(value) is int and abs(value) < 2**63)
    if not fits or not value >= least:
        raise FieldError(name, f"{name} is {wanted}; got {described(value)}")


def check_positive(name: str, value: float, wanted: str) -> None:
    """Raise a FieldError unless the value is a positive, finite number."""
    check_number(name, value, 0, wanted=wanted)
    if not (value > 0 and math.isfinite(value)):
        raise FieldError(name, f"{name} is {wanted}; got {value}")


def check_steps(name: str, value: int, most: int) -> None:
    """Raise a FieldError unless the value is a number of steps, from 0 to `most`."""
    if not is_whole(value) or not 0 <= value <= most:
        raise FieldError(name, f"{name} is a number of steps, 0 to {most}; got {described(value)}")


def check_device(device: object) -> torch.device:
    """Return a device that torch can compute on, or raise a FieldError."""
    try:
        found: torch.device = torch.device(device)  # type: ignore[call-overload]
        torch.zeros(1, device=found).item()
    except (TypeError, RuntimeError, AssertionError, NotImplementedError):
        given = str(device) if isinstance(device, torch.device) else device
        message = f"device is cpu, or cuda where there is one; cannot compute on {described(given)}"
        raise FieldError("device", message) from None
    return found


def check_path(path: object, name: str = "path") -> None:
    """Raise a FieldError unless the value can be the name of a file or folder."""
    wanted = "the name of a file or folder, e.g. 'out/model'"
    check_kind(name, path, (str, os.PathLike), wanted)
    if not os.fspath(path):  # type: ignore[call-overload]
        raise FieldError(name, f"{name} must be {wanted}; got nothing")


def check_fields(record: Any) -> None:
    """Raise a FieldError unless each field of a dataclass has its annotated class.

    Shapes are not checked.
    """
    kind: Any = type(record)
    for name, hint in _hints(kind).items():
        value = getattr(record, name)
        if not _fits(value, hint):
            wanted = " or ".join(
                WANTED.get(kind, _a(kind.__name__)) for kind in map(_class_of, _choices(hint))
            )
            raise FieldError(name, f"{name} must be {wanted}; got {described(value)}")


WANTED = {
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a tuple",
    type(None): "None",
}
"""Names of classes in messages."""


@functools.cache
def _hints(record: Any) -> dict[str, Any]:
    """Return the annotated classes of fields by name, except the class itself."""
    hints = typing.get_type_hints(record).items()
    return {name: hint for name, hint in hints if typing.get_origin(hint) is not typing.ClassVar}


def _fits(value: object, hint: Any) -> bool:
    """Return whether a value, and each entry of a tuple, is of an annotated class.

    True and False are not numbers.
    """
    if typing.get_origin(hint) is tuple and isinstance(value, tuple):
        return all(_fits(item, typing.get_args(hint)[0]) for item in value)
    kinds = tuple(map(_class_of, _choices(hint)))
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, (*kinds, int) if float in kinds else kinds)


def _choices(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _class_of(hint: Any) -> Any:
    """Return the class behind an annotation.

    This is `tuple` for a tuple of numbers, and `Tensor` for a tensor with a shape.
    """
    return getattr(hint, "array_type", typing.get_origin(hint) or hint)


def described(value: object) -> str:
    """Return a one-line description of a value, for messages."""
    if isinstance(value, Tensor | np.ndarray):
        return f"{type(value).__name__} of {value.dtype} and shape {tuple(value.shape)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    shown = " ".join(reprlib.repr(value).split())
    return (
        shown
        if isinstance(value, str | int | float | list | tuple | dict | None)
        else _a(type(value).__name__)
    )


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOaeio' else 'a'} {noun}"


def generator(rng: Seed, name: str = "rng") -> torch.Generator:
    """Return the generator, or a new one for a seed.

    torch's generator on the CPU takes a seed modulo 2**32. NumPy's `SeedSequence`
    derives the state for a larger seed, so that no two seeds coincide.
    """
    if isinstance(rng, int) and not isinstance(rng, bool) and 0 <= rng < 2**63:
        return (
            torch.Generator().manual_seed(rng)
            if rng < 2**32
            else derived(np.random.SeedSequence(rng))
        )
    check_kind(name, rng, torch.Generator, "a torch.Generator or a seed, a whole number from 0 on")
    assert isinstance(rng, torch.Generator)
    return rng


def derived(seeds: np.random.SeedSequence) -> torch.Generator:
    """Return a generator on the CPU in a state made from NumPy's derived seeds."""
    rng = torch.Generator()
    state = rng.get_state()
    words = seeds.generate_state(WORDS).astype(np.uint64)
    state[FIRST_WORD : FIRST_WORD + 8 * WORDS] = torch.from_numpy(words.view(np.uint8))
    rng.set_state(state)
    return rng


def as_tokens(tokens: object, name: str = "tokens") -> Int[Tensor, "batch time"]:
    """Return sequences of tokens as an int64 tensor, or raise a FieldError."""
    given = (
        torch.from_numpy(np.array(tokens, dtype=np.int64)) if _is_integer_array(tokens) else tokens
    )
    if not isinstance(given, Tensor) or given.ndim != 2 or given.dtype not in _INTEGERS:
        wanted = "whole numbers of shape (batch, time), a tensor or an array such as batch.tokens"
        raise FieldError(name, f"{name} must be {wanted}; got {described(tokens)}")
    return given.long()


_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def _is_integer_array(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def check_memory(needed: int, what: str) -> None:
    """Raise a ValueError if something needs more memory than this machine has free.

    The check comes before any memory is taken. The variable SIH_MEMORY_GB sets another
    limit.
    """
    free = memory_free()
    if needed > free:
        size = (
            f"{needed / 1e9:,.1f}"
            if needed < 10**18
            else f"about 10^{needed.bit_length() * 3 // 10 - 9}"
        )
        raise ValueError(
            f"{what} would take {size} GB; {free / 1e9:,.1f} GB are free (SIH_MEMORY_GB sets another limit)"
        )


def memory_free() -> float:
    """Return the bytes that may be taken, from SIH_MEMORY_GB or from the system."""
    given = os.environ.get("SIH_MEMORY_GB")
    if given is not None:
        with suppress(ValueError):
            return float(given) * 1e9
        raise ValueError(f"SIH_MEMORY_GB is a number of GB, e.g. 8; got {given!r}")
    with suppress(OSError, LookupError, ValueError):
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        return float(lines["MemAvailable"].split()[0]) * 1024
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise a FieldError unless the value of field `name` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise FieldError(
            name, f"{name} must be one of {', '.join(choices)}; got {described(value)}"
        )


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name of a dtype that models may have, or raise a FieldError."""
    for name, known in DTYPES.items():
        if known is dtype:
            return name
    raise FieldError("dtype", f"dtype must be torch.float32 or torch.float64; got {dtype}")


def is_concrete(tensor: Tensor) -> bool:
    """Return whether the tensor's values can be read now.

    They cannot while torch compiles, or within its transforms (`torch.func`, `vmap`,
    forward derivatives), or where a tensor has a shape but no values.
    """
    return not (
        tensor.is_meta
        or type(tensor) not in (Tensor, torch.nn.Parameter)
        or torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )


def check_tokens(tokens: Tokens, num_states: int, length: int | None) -> Int[Tensor, "batch time"]:
    """Return the tokens as int64 if a model accepts them, or raise a FieldError.

    A `length` of None stands for a model that accepts sequences of any length.
    """
    tokens = as_tokens(tokens)
    time = tokens.shape[1]
    if time < 1 or (length is not None and time > length):
        wanted = "at least 1" if length is None else f"1 to {length}"
        got = f"got shape {tuple(tokens.shape)}"
        raise FieldError(
            "tokens", f"tokens must be of shape (batch, time) with time {wanted}; {got}"
        )
    if tokens.numel() and is_concrete(tokens):
        low, high = (int(bound) for bound in torch.aminmax(tokens))
        if low < 0 or high >= num_states:
            raise FieldError(
                "tokens",
                f"tokens must be states 0 to {num_states - 1}; got {low if low < 0 else high}",
            )
    return tokens
