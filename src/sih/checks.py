"""Checks that several rooms need, and the error they raise: it knows which field is at fault."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

DTYPES = {"float32": torch.float32, "float64": torch.float64}


class FieldError(ValueError):
    """Says in one line what is wrong with a value, and in `field` the name under which it was given."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field

    def __reduce__(self) -> tuple[type[FieldError], tuple[str, str]]:
        return type(self), (self.field, str(self))  # so that it passes from a worker process to its parent


def check_sizes(**sizes: int) -> None:
    """Raise a FieldError unless every size, by its name, is a whole number of at least 1."""
    for name, value in sizes.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise FieldError(name, f"{name} must be a whole number, at least 1; got {value!r}")


def check_heads(heads: Sequence[int]) -> tuple[int, ...]:
    """Give the numbers of heads of each layer as a tuple, or raise a FieldError."""
    given = tuple(heads) if isinstance(heads, Iterable) else ()
    if not given or any(isinstance(h, bool) or not isinstance(h, int) or h < 1 for h in given):
        raise FieldError("heads", f"heads is the number of heads of each layer, e.g. (1, 3, 1); got {heads!r}")
    return given


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise a FieldError for the field `name` unless the value is one of the choices."""
    if value not in choices:
        raise FieldError(name, f"{name} must be one of {', '.join(choices)}; got {value!r}")


def dtype_name(dtype: torch.dtype) -> str:
    """Give the name of a type of numbers that models may have, or raise a FieldError."""
    for name, known in DTYPES.items():
        if known == dtype:
            return name
    raise FieldError("dtype", f"dtype must be torch.float32 or torch.float64; got {dtype}")


def is_concrete(tensor: Tensor) -> bool:
    """Tell whether the tensor's values can be read now.

    They cannot while torch compiles, within its transforms (`torch.func`, `vmap`, forward derivatives), and
    where a tensor has a shape but no values.
    """
    return not (
        tensor.is_meta
        or type(tensor) not in (Tensor, torch.nn.Parameter)
        or torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )


def check_tokens(tokens: Tensor, num_states: int, length: int) -> None:
    """Raise a FieldError unless the tokens are what a model of these sizes takes."""
    if tokens.ndim != 2 or tokens.dtype != torch.int64 or not 1 <= tokens.shape[1] <= length:
        raise FieldError(
            "tokens",
            f"tokens must be int64 of shape (batch, time) with time 1 to {length}; "
            f"got {tokens.dtype} of shape {tuple(tokens.shape)}",
        )
    if tokens.numel() and is_concrete(tokens):
        low, high = (int(bound) for bound in torch.aminmax(tokens))
        if low < 0 or high >= num_states:
            raise FieldError("tokens", f"tokens must be states 0 to {num_states - 1}; got {low if low < 0 else high}")


def plot(data: Any) -> Any:
    """Draw a record that `sih.figures` has a form for. It is imported only now: the records live below it."""
    return importlib.import_module("sih.figures.gallery").draw(data)
