"""Defines what every kind of model can do: predict, trace a pass, replace values in it, carry notes.

A kind is a subclass of `Model` with a line in `sih.models.KINDS`. It writes its equations, `equations(tokens, site)`,
calling `site(name, value)` at each value worth a name. Everything else here follows from them.
"""

from __future__ import annotations

import math
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.checks import (
    DTYPES,
    FieldError,
    Tokens,
    check_choice,
    check_heads,
    check_kind,
    check_memory,
    check_sizes,
    check_tokens,
    is_concrete,
)
from sih.models.hooks import HookPoints, module_name
from sih.models.sites import PassRecorder, Replacement, Site, Trace


@dataclass(frozen=True)
class ModelConfig:
    """Describes everything that shapes a model, apart from its weights. A kind adds fields of its own."""

    num_states: int
    length: int
    heads: tuple[int, ...] = ()
    """Number of heads of each layer; () for a model without attention."""
    temperature: float = 1.0
    """What scores of attention are divided by."""
    readout: str = "logit"
    """What the output is: "logit" (a softmax makes it probabilities) or "probability" (it is probabilities already)."""
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_sizes(num_states=self.num_states, length=self.length)
        object.__setattr__(self, "heads", check_heads(self.heads) if self.heads != () else ())
        alpha = self.temperature
        if not (isinstance(alpha, int | float) and math.isfinite(alpha) and alpha > 0):
            message = f"temperature divides the scores and is positive and finite; got {alpha!r}"
            raise FieldError("temperature", message)
        object.__setattr__(self, "temperature", float(alpha))
        check_choice("readout", self.readout, ("logit", "probability"))
        check_choice("dtype", self.dtype, tuple(DTYPES))


@dataclass(frozen=True)
class ModelShape(ABC):
    """Holds what a kind of model needs to know beyond the task that it is trained on."""

    kind: ClassVar[str]
    """The kind's name, in flags, in configurations on disk and in `sih.models.KINDS`."""

    @abstractmethod
    def build(self, num_states: int, length: int, *, init: str = "zeros", rng: torch.Generator | None = None) -> Model:
        """Make a model of this shape, with weights drawn from `rng` as `init` says."""


def check_model(model: object) -> None:
    """Raise a FieldError unless it is a model."""
    check_kind("model", model, Model, "a model, e.g. sih.Transformer(num_states=5, length=128)")


class _HooksPlaced(ABCMeta):
    """Gives a model its hook points as soon as it is made, with the names that its equations use."""

    def __call__(cls, *args: Any, **fields: Any) -> Any:
        model = super().__call__(*args, **fields)
        recorder = PassRecorder()
        with torch.no_grad():
            model.equations(torch.zeros(1, 1, dtype=torch.int64, device=model.device), recorder)
        model.points = HookPoints(model, recorder.values)
        return model


class Model(nn.Module, metaclass=_HooksPlaced):
    """Predicts the next token at every position of a sequence.

    The constructor of a kind takes the fields of its `Config` by name (`dtype` as torch's), and `init` and `rng`, which
    say how weights are drawn; `init="zeros"` is for weights to come.
    """

    Config: ClassVar[type[ModelConfig]] = ModelConfig
    Shape: ClassVar[type[ModelShape]]
    paths: ClassVar[tuple[str, ...]]
    """Ways to compute the output, which agree up to rounding: the fastest first, the equations last."""
    large_products: ClassVar[bool] = False
    """Whether its matrix products are large enough for threads to share; otherwise each thread takes sequences."""

    config: ModelConfig
    points: HookPoints
    notes: dict[str, Any]
    """Plain JSON about the model, saved beside its weights."""
    circuit: Any = None
    """The circuit that the weights follow, if `sih.construct` wrote them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = torch.finfo(DTYPES[config.dtype]).bits // 8
        check_memory(self.count_weights(config) * width, f"a model with heads {config.heads!s:.40} of these sizes")
        self.config = config
        self.notes = {}

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @classmethod
    def from_config(cls, config: ModelConfig) -> Model:
        """Make a model of this configuration with all weights zero."""
        return cls(**{**asdict(config), "dtype": DTYPES[config.dtype], "init": "zeros"})

    @classmethod
    def count_weights(cls, config: Any) -> int:
        """Count the weights of a configuration without making them, so that no file makes a program take more memory
        than there is. A kind that does not say is not asked."""
        return 0

    @abstractmethod
    def equations(self, tokens: Int[Tensor, "batch time"], site: Site) -> Float[Tensor, "batch time state"]:
        """Compute the output as the equations stand, with `value = site(name, value)` at each named value."""

    def fast(self, tokens: Int[Tensor, "batch time"], path: str) -> Float[Tensor, "batch time state"]:
        """Compute the same numbers along one of the other `paths`."""
        raise NotImplementedError(f"{type(self).__name__} has no path {path!r}")

    def named_values(self, tokens: Int[Tensor, "batch time"], path: str) -> Mapping[str, Tensor]:
        """Make the named values of a pass, for `trace`. A kind may override it to make them with less work."""
        values = self.run(tokens).values
        return values if torch.is_grad_enabled() else {name: value.detach() for name, value in values.items()}

    def forward(self, tokens: Tokens, path: str | None = None) -> Float[Tensor, "batch time state"]:
        """Compute the output of the last linear map, along one of `paths`. Sequences may be shorter than `length`.

        Where there are hooks, the equations are the usual path, and the only one.
        """
        tokens = self._checked(tokens)
        path = self.choose_path(tokens, path)
        if path != self.paths[-1]:
            return self.fast(tokens, path)
        return self.equations(tokens, Site(self.points.hooked()))

    def choose_path(self, tokens: Int[Tensor, "batch time"], path: str | None = None) -> str:
        """Give the path that a call with these tokens takes, or raise a FieldError if it cannot take `path`."""
        equations = self.paths[-1]
        if path is not None:
            check_choice("path", path, self.paths)
        if path == equations or not is_concrete(tokens):
            if path not in (None, equations):
                raise FieldError("path", f"only the path {equations!r} can be traced or transformed; got {path!r}")
            return equations
        if hooked := self.points.hooked():
            if path is not None:
                message = f"the hooks at {next(iter(hooked))!r} act on the path {equations!r} alone; got {path!r}"
                raise FieldError("path", message)
            return equations
        return path or self.usual_path()

    def usual_path(self) -> str:
        """Choose the path of a call that names none, the fastest on this machine.

        What torch compiles, traces or transforms (`torch.func`, `vmap`) goes by the equations all the same.
        """
        return self.paths[0]

    def predict(self, tokens: Tokens, path: str | None = None) -> Float[Tensor, "batch time state"]:
        """Predict the distribution of the next token at every position."""
        return self.law(self(tokens, path=path))

    def law(self, output: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch state"]:
        """Turn outputs into distributions of the next token."""
        return output if self.config.readout == "probability" else torch.softmax(output, dim=-1)

    def trace(self, tokens: Tokens, path: str | None = None, *, detach: bool = True) -> Trace:
        """Run the model and give everything it computed, by name (see `sih.models.sites`).

        The values have no gradients unless `detach=False`; those of `run` do.
        """
        tokens = self._checked(tokens)
        path = self.choose_path(tokens, path)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not detach):
            return Trace(tokens, self.named_values(tokens, path), self.config.heads)

    def run(self, tokens: Tokens, replace: Mapping[str, Replacement] | None = None) -> Trace:
        """Run the model with some values replaced, by others or by a function of them, and what follows redone.

        `model.run(tokens, replace={"2.3/output": 0.0})` takes a head out; `trace.output` is then the output.
        """
        tokens = self._checked(tokens)
        if replace is not None:
            check_kind("replace", replace, Mapping, "a dict such as {'2.1/output': 0.0}")
        missed = [name for name in replace or {} if name not in self.points.homes]
        if missed:
            raise ValueError(f"nothing to replace is called {missed[0]!r}; there are {', '.join(self.points.homes)}")
        recorder = PassRecorder(replace, self.points.hooked())
        self.equations(tokens, recorder)
        return Trace(tokens, recorder.values, self.config.heads)

    def hook_points(self) -> dict[str, nn.Module]:
        """Give the submodule that each named value passes through, by its name (see `sih.models.sites`).

        Hooks on it read the value and change it, as `run(replace=...)` does, in every pass: with hooks, a pass takes
        the equations. Tools that look for submodules find them by these names, but for "/token", "/position" and
        "/output" (`sih.models.hooks`). `next_token_loss` works on parts of a batch, and a hook is called for each.
        """
        return self.points.modules()

    def get_submodule(self, target: str) -> nn.Module:
        return super().get_submodule(module_name(target))

    def _checked(self, tokens: Tokens) -> Int[Tensor, "batch time"]:
        return check_tokens(tokens, self.config.num_states, self.config.length)

    def contributions(self, trace: Trace) -> dict[str, Float[Tensor, "batch time state"]]:
        """Give what each value written to the residual stream adds to the output, of a kind that adds them up."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value}' for key, value in asdict(self.config).items())})"
