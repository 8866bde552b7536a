"""A stand-in for a device that this machine does not have, with true numbers.

A tensor of the stand-in says that it is on `elsewhere:0`, its values are on the CPU. As on a real one, an operation on
both kinds at once raises, but for a CPU scalar, and so does reading its memory; a generator of the CPU cannot fill it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils.backend_registration
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

torch.utils.backend_registration._setup_privateuseone_for_python_backend("elsewhere")
DEVICE = torch.device("elsewhere:0")
_COPY = torch.ops.aten.copy_.default
_OF_BOTH = {
    _COPY,
    torch.ops.aten._to_copy.default,
    torch.ops.aten.index_put_.default,
    torch.ops.aten.index.Tensor,
}
"""Operations that may see tensors of both: moves, and what is indexed by numbers of the CPU."""


class Elsewhere(Tensor):
    """Holds a CPU tensor and says that it is on the device."""

    value: Tensor

    @staticmethod
    def __new__(cls, value: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls,
            value.shape,
            strides=value.stride(),
            storage_offset=value.storage_offset(),
            dtype=value.dtype,
            device=DEVICE,
            requires_grad=value.requires_grad,
        )
        made.value = value
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch declares it as no method of a class
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        found, to = (
            [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)],
            kwargs.get("device"),
        )
        here = [x for x in found if not isinstance(x, Elsewhere) and x.dim()]
        there = any(isinstance(x, Elsewhere) for x in found)
        if there and here and func not in _OF_BOTH:
            raise RuntimeError(
                f"{func}: expected all tensors to be on the same device, but found {DEVICE} and cpu"
            )
        if isinstance(kwargs.get("generator"), torch.Generator) and (there or _is_there(to)):
            raise RuntimeError(f"{func}: expected a generator of {DEVICE}, found one of the CPU")
        if _is_there(to):
            kwargs = {**kwargs, "device": torch.device("cpu")}
        out = func(
            *tree_map_only(Elsewhere, _value, args), **tree_map_only(Elsewhere, _value, kwargs)
        )
        if func is _COPY:
            return args[0]
        if _is_there(to) if to is not None else there:
            out = tree_map_only(Tensor, Elsewhere, out)
        return return_and_correct_aliasing(func, args, kwargs, out) if there else out


class _Device(TorchDispatchMode):
    """Makes the tensors of factories and moves that name the device."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch's compiler takes seconds to import

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        ours = Elsewhere in types or _is_there(kwargs.get("device"))
        return (
            Elsewhere.__torch_dispatch__(func, types, args, kwargs)
            if ours
            else func(*args, **kwargs)
        )


def _value(tensor: Elsewhere) -> Tensor:
    return tensor.value


def _is_there(device: Any) -> bool:
    return device is not None and torch.device(device).type == DEVICE.type


@contextmanager
def a_device() -> Iterator[str]:
    """Have the device within the block, and give its name."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(
        True
    )  # else `model.to` keeps the CPU tensor's own type
    try:
        with _Device():  # type: ignore[no-untyped-call]  # its constructor has no types in torch
            yield str(DEVICE)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
