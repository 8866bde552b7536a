"""Submodules for all activations of a pass, so that hooks can read and change them.

Without hooks they cost nothing. torch allows no dot in a module's name. So the
activation `1.1/attention` passes through the child "1/attention" of the child "1", and
`get_submodule("1.1/attention")` finds it, as nnsight and pyvene do. `token`, `position`
and `output` pass through "/token", "/position" and "/output". Without the slash these
are weights, or nnsight's.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn


class HookPoint(nn.Module):
    """A module that returns an activation unchanged, for hooks
    (`register_forward_hook`, ...).
    """

    def forward(self, value: Tensor) -> Tensor:
        return value


class HookPoints:
    """The hook points of a module, one per name, and those that have hooks."""

    def __init__(self, module: nn.Module, names: Iterable[str]) -> None:
        self.homes: dict[str, tuple[dict[str, Any], str]] = {}
        """The modules that contain the point, and its name there, by the activation's
        name."""
        for name in names:
            *above, key = module_name(name).split(".")
            home = module
            for part in above:
                if part not in home._modules:
                    home.add_module(part, nn.ModuleDict())
                home = home.get_submodule(part)
            home.add_module(key, HookPoint())
            self.homes[name] = (home._modules, key)
        self.weights = {name for name, _ in module.named_parameters()}
        """The names of all weights of the module when it was made."""
        within = ((name, other) for name, other in module.named_modules() if name)
        self.never_called = {
            name: other for name, other in within if not isinstance(other, HookPoint)
        }

    def modules(self) -> dict[str, nn.Module]:
        return {name: modules[key] for name, (modules, key) in self.homes.items()}

    def hooked(self) -> dict[str, nn.Module]:
        """Return the points with hooks, or all points while torch compiles."""
        points = self.modules()
        if torch.compiler.is_compiling():
            return points
        for name, module in self.never_called.items():
            if has_hooks(module):
                instead = "use one of hook_points(), e.g. '1.1/output'"
                raise ValueError(
                    f"nothing passes through {name!r}, so that its hooks cannot act; {instead}"
                )
        # A tool may also put another module in a point's place, or a `forward` of its own on it (nnsight does).
        return {
            name: point
            for name, point in points.items()
            if has_hooks(point) or "forward" in point.__dict__ or type(point) is not HookPoint
        }


def has_hooks(module: nn.Module) -> bool:
    """Return whether hooks of any kind are registered on the module."""
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)


def module_name(name: str) -> str:
    """Return the name of an activation's submodule."""
    return f"/{name}" if name in ("token", "position", "output") else name
