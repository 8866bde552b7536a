"""Defines what every kind of model can do: predict, trace a pass, replace values in it, carry notes.

A kind is a subclass of `Model` with a line in `sih.models.KINDS`. It writes its equations, `equations(tokens, site)`,
calling `site(name, value)` at each value worth a name. Everything else here follows from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.base.errors import (
    DTYPES,
    FieldError,
    check_choice,
    check_kind,
    check_memory,
    check_tokens,
    generator,
    is_concrete,
)
from sih.base.record import Above, Among, NotEmpty, Size, check
from sih.base.showing import Drawn
from sih.base.types import Seed, Tokens
from sih.models.fast.causal import mask_later
from sih.models.hooks import HookPoints, module_name
from sih.models.parts import default_rows, in_parts
from sih.models.sites import PassRecorder, Replacement, Site, Trace, layer_of

Heads = Annotated[tuple[Size, ...], NotEmpty("the number of heads of each layer, e.g. (1, 3, 1)")]
Temperature = Annotated[float, Above(0)]
READOUTS = ("logit", "probability")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that shapes a model, apart from its weights. A kind adds its shape."""

    num_states: Size
    length: Size | None
    """The longest sequence, None for a kind that takes any.

    Such a kind's constructor and files do not have it."""
    heads: tuple[Size, ...] = ()
    """Number of heads of each layer; () for a model without attention."""
    temperature: Temperature = 1.0
    """What scores of attention are divided by."""
    readout: Annotated[str, Among(READOUTS)] = "logit"
    """The output: "logit" (a softmax makes it probabilities) or "probability"."""
    dtype: Annotated[str, Among(DTYPES)] = "float32"

    def __post_init__(self) -> None:
        check(self)

    def entries(self) -> dict[str, Any]:
        """Return what the configuration was made from: the fields its constructor takes."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}


@dataclass(frozen=True)
class BoundedConfig(ModelConfig):
    """Describes a model with a weight for every position, of sequences up to a length."""

    length: Size


@dataclass(frozen=True)
class ModelShape(ABC):
    """The sizes of a model that a task does not give: what a training run may choose.

    A kind adds its fields. They are flags of `sih train` and entries of a run's
    `config.json`, by the names that they have as arguments of the kind's constructor.
    """

    kind: ClassVar[str]
    """The kind's name, in flags, in configurations on disk and in `sih.models.KINDS`."""

    def __post_init__(self) -> None:
        check(self)

    @abstractmethod
    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        """Make a model of this shape for a task of these sizes, drawn as `init` says."""


def check_model(model: object) -> None:
    """Raise a FieldError unless it is a model."""
    check_kind("model", model, Model, "a model, e.g. sih.Transformer(num_states=5, length=128)")


class Model(Drawn, nn.Module, ABC):
    """Predicts the next token at every position of a sequence.

    It is made from its `Config`, and from `init` and `rng`, which say how weights are
    drawn; `init="zeros"` is for weights to come. The constructors of `sih` take the
    fields of the Config instead (`dtype` as torch's). A kind writes `make_weights`,
    `draw` and `equations`.

    >>> import sih
    >>> model = sih.DisentangledTransformer(num_states=2, length=16, heads=(1, 2, 1), rng=0)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])
    >>> model(tokens).shape, model.predict(tokens).shape
    (torch.Size([1, 4, 2]), torch.Size([1, 4, 2]))
    >>> model.hook_points()["2.1/attention"]
    HookPoint()
    >>> type(model).from_config(model.config).get_submodule("2.1/attention")
    HookPoint()
    """

    drawing = "sih.results.plots.model:draw_model"

    Config: ClassVar[type[ModelConfig]] = ModelConfig
    Shape: ClassVar[type[ModelShape]]
    draws: ClassVar[tuple[str, ...]] = ("uniform",)
    """The ways to draw weights that `init` may name, beside "zeros"."""
    paths: ClassVar[tuple[str, ...]]
    """Ways to compute the output, which agree up to rounding: the fastest first, the equations last."""
    large_products: ClassVar[bool] = False
    """Whether its matrix products are large enough for threads to share; otherwise each thread takes sequences."""
    scores_from_stream: ClassVar[bool] = True
    """Whether a score is a bilinear form of the stream at query and key, and of nothing else."""
    first: int = 0
    """The row of token 0 in the named values: 1 where the model puts a start token before the sequence."""

    config: ModelConfig
    points: HookPoints
    notes: dict[str, Any]
    """Plain JSON about the model, saved beside its weights."""
    circuit: Any = None
    """The circuit that the weights follow, if `sih.construct` wrote them."""

    def __init__(self, config: ModelConfig, init: str = "zeros", rng: Seed | None = None) -> None:
        super().__init__()
        check_choice("init", init, (*self.draws, "zeros"))
        dtype = DTYPES[config.dtype]
        what = f"a model with heads {config.heads!s:.40} of these sizes"
        check_memory(self.count_weights(config) * (torch.finfo(dtype).bits // 8), what)
        self.config = config
        self.notes = {}
        self.make_weights(dtype)
        if init != "zeros":
            with torch.no_grad():
                self.draw(init, generator(0 if rng is None else rng))
        self.points = HookPoints(self, self._value_names())

    @abstractmethod
    def make_weights(self, dtype: torch.dtype) -> None:
        """Make the weights, all zero, of the sizes that `self.config` says."""

    def draw(self, init: str, rng: torch.Generator) -> None:
        """Draw the weights at random as `init`, one of `draws`, says."""

    def _value_names(self) -> list[str]:
        """Return the names that the equations give to values: those of the hook points."""
        recorder = PassRecorder()
        token = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        with torch.no_grad():
            self.equations(token, recorder)
        return list(recorder.values)

    @property
    def device(self) -> torch.device:
        """Return the device that the weights are on."""
        return next(self.parameters()).device

    @classmethod
    def from_config(cls, config: ModelConfig) -> Self:
        """Make a model of this configuration with all weights zero.

        >>> import sih
        >>> model = sih.Transformer(num_states=2, length=16, heads=(1,), dim=8, qk_dim=4)
        >>> sih.Transformer.from_config(model.config).readout.abs().max().item()
        0.0
        """
        model = cls.__new__(cls)
        Model.__init__(model, config)
        return model

    @classmethod
    def count_weights(cls, config: Any) -> int:
        """Count the weights of a configuration without making them, so that no file makes a program take more memory
        than there is. A kind that does not say is not asked."""
        return 0

    @abstractmethod
    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        """Compute the output as the equations stand, with `value = site(name, value)` at each named value."""

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        """Compute the same numbers along one of the other `paths`."""
        raise NotImplementedError(f"{type(self).__name__} has no path {path!r}")

    def named_values(self, tokens: Int[Tensor, "batch time"], path: str) -> Mapping[str, Tensor]:
        """Make the named values of a pass, for `trace`. A kind may override it to make them with less work."""
        values = self.run(tokens).values
        return (
            values
            if torch.is_grad_enabled()
            else {name: value.detach() for name, value in values.items()}
        )

    def forward(self, tokens: Tokens, path: str | None = None) -> Float[Tensor, "batch time state"]:
        """Compute the output of the last linear map, along one of `paths`. Sequences may be shorter than `length`.

        Where there are hooks, the equations are the usual path, and the only one.

        Args:
            tokens: of shape (batch, time).
            path: how to compute it, the fastest way here unless given.
        """
        tokens = self._checked(tokens)
        path = self.choose_path(tokens, path)
        if path == self.paths[-1]:
            return self.equations(tokens, Site(self.points.hooked()))
        if not self._in_parts(tokens):
            return self.fast(tokens, path)
        return in_parts(
            partial(self.fast, path=path), self._equations, tokens, list(self.parameters())
        )

    def _equations(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time state"]:
        return self.equations(tokens, Site())

    def _in_parts(self, tokens: Int[Tensor, "batch time"]) -> bool:
        """Tell whether a gradient may be asked for, of more sequences than should go at a time.

        It is one by the parameters alone, so not where one of them was replaced by a tensor of another kind.
        """
        elsewhere = (
            self.large_products or tokens.device.type != "cpu" or torch.is_autocast_enabled("cpu")
        )
        if not torch.is_grad_enabled() or elsewhere:
            return False
        many = len(tokens) > default_rows(tokens, torch.get_num_threads())
        weights = dict(self.named_parameters())
        whole = weights.keys() == self.points.weights
        return many and whole and any(weight.requires_grad for weight in weights.values())

    def choose_path(self, tokens: Int[Tensor, "batch time"], path: str | None = None) -> str:
        """Give the path that a call with these tokens takes, or raise a FieldError if it cannot take `path`."""
        equations = self.paths[-1]
        if path is not None:
            check_choice("path", path, self.paths)
        if path == equations or not is_concrete(tokens):
            if path not in (None, equations):
                raise FieldError(
                    "path",
                    f"only the path {equations!r} can be traced or transformed; got {path!r}",
                )
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
        r"""Predict the law of the next token at every position: at i, $\hat p(s_{i+1} \mid s_{0:i})$.

        Args:
            tokens: of shape (batch, time), with time up to the model's length.
            path: how to compute it, the fastest way here unless given.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.predict(torch.tensor([[0, 1, 1, 1]]))[0, -1]
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        return self.law(self(tokens, path=path))

    def law(self, output: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch state"]:
        """Turn outputs into laws of the next token: their softmax, or themselves if they are probabilities.

        >>> import sih
        >>> sih.Transformer(num_states=2, length=16).law(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
        """
        return output if self.config.readout == "probability" else torch.softmax(output, dim=-1)

    def trace(self, tokens: Tokens, path: str | None = None, *, detach: bool = True) -> Trace:
        """Run the model and give everything it computed, by name (see `sih.models.sites`).

        Args:
            tokens: of shape (batch, time).
            path: how to compute it, the fastest way here unless given.
            detach: leave gradients out; the values of `run` always have them.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> trace = model.trace(torch.tensor([[0, 1, 1, 1]]))
        >>> trace["3.1/attention"][0, -1].round(decimals=3)  # lag 1: the next token follows the last
        tensor([0., 0., 0., 1.], dtype=torch.float64)
        """
        tokens = self._checked(tokens)
        path = self.choose_path(tokens, path)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not detach):
            return Trace(tokens, self.named_values(tokens, path), self.config.heads, self.first)

    def run(self, tokens: Tokens, replace: Mapping[str, Replacement] | None = None) -> Trace:
        """Run the model with some values replaced, by others or by a function of them, and what follows redone.

        Args:
            tokens: of shape (batch, time).
            replace: by name, a tensor or number, or a function of what was there.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> trace = model.run(torch.tensor([[0, 1, 1, 1]]), replace={"3.1/output": 0.0})  # take a head out
        >>> trace.output.abs().max().item()
        0.0
        """
        tokens = self._checked(tokens)
        if replace is not None:
            check_kind("replace", replace, Mapping, "a dict such as {'2.1/output': 0.0}")
        missed = [name for name in replace or {} if name not in self.points.homes]
        if missed:
            raise ValueError(
                f"nothing to replace is called {missed[0]!r}; there are {', '.join(self.points.homes)}"
            )
        recorder = PassRecorder(replace, self.points.hooked())
        self.equations(tokens, recorder)
        return Trace(tokens, recorder.values, self.config.heads, self.first)

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

    def writers(self, layers: int) -> tuple[str, ...]:
        """Return the names of what the stream holds after this number of layers, in the order of writing.

        Unless a kind says otherwise these are all values made before `0/stream`, and what heads
        and MLPs add: a stream that is a sum.

        >>> import sih
        >>> sih.Transformer(num_states=2, length=16, heads=(2, 1), dim=8, qk_dim=4).writers(1)
        ('token', 'position', '1.1/output', '1.2/output')
        """
        if "0/stream" not in self.points.homes:
            return ()
        names = list(self.points.homes)
        start = names.index("0/stream")
        added = (name for name in names[start:] if name.endswith(("/output", "/mlp")))
        return (*names[:start], *(name for name in added if layer_of(name) <= layers))

    def columns(self, name: str, layers: int) -> slice:
        """Return where the stream after this number of layers holds a written value, or `0/stream`.

        That is everywhere in a stream that is a sum.

        >>> import sih
        >>> sih.DisentangledTransformer(2, 16, heads=(1,)).columns("1.1/output", 1)
        slice(18, 36, None)
        """
        return slice(None)

    @torch.no_grad()
    def scores(
        self,
        head: str,
        query: Float[Tensor, "query dim"],
        key: Float[Tensor, "key dim"],
        offset: int,
    ) -> Float[Tensor, "query key"]:
        """Return a head's scores, before the temperature, of keys `offset` positions before queries.

        Queries and keys are what the head may read, vectors of its stream. Unless a kind says
        otherwise its equations are run with them in place of what the head reads.

        Args:
            head: its name, e.g. "2.1".
            query: vectors that a query may read.
            key: vectors that a key may read.
            offset: how many positions each key lies before each query.

        >>> import sih
        >>> model = sih.Transformer(num_states=2, length=16, heads=(1,), dim=4, qk_dim=2, rng=0)
        >>> trace = model.trace(torch.tensor([[0, 1, 1, 0]]))
        >>> h = trace["0/stream"][0]
        >>> found = model.scores("1.1", h, h, offset=1)[2, 1]
        >>> bool((found - trace["1.1/scores"][0, 2, 1]).abs() < 1e-6)
        True
        """
        length = self.config.length or offset + len(key)
        rows = length + self.first
        if not 0 <= offset < rows:
            raise FieldError("offset", f"offset is from 0 to {rows - 1} here; got {offset}")
        tokens = torch.zeros(1, length, dtype=torch.int64, device=self.device)
        found = []
        for keys in key.split(rows - offset):
            placed = keys.new_zeros(1, rows, keys.shape[-1])
            placed[:, : len(keys)] = keys
            read: dict[str, Replacement] = {f"{head}/query": query[:, None], f"{head}/key": placed}
            scores = self.run(tokens.expand(len(query), -1), replace=read)[f"{head}/scores"]
            found.append(scores.diagonal(-offset, -2, -1)[:, : len(keys)])
        return torch.cat(found, dim=-1)

    def contributions(self, trace: Trace) -> dict[str, Float[Tensor, "batch time state"]]:
        """Give what each value written to the residual stream adds to the output, of a kind that adds them up.

        >>> import sih
        >>> model = sih.Transformer(num_states=2, length=16, heads=(1, 1), dim=8, qk_dim=4)
        >>> trace = model.trace(torch.tensor([[0, 1, 1, 0]]))
        >>> parts = model.contributions(trace)
        >>> list(parts), torch.allclose(sum(parts.values()), trace.output, atol=1e-6)
        (['token', 'position', '1.1/output', '2.1/output'], True)
        """
        return {}

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "query key"]]:
        """Give a head's scores between two tokens and between two positions, if the stream held nothing else.

        Elhage et al.'s full QK circuit, by "token" and "position" (or by "offset", a row for each token). A kind that
        does not say has none.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.direct_scores("1.1")["token"].exp()  # P transposed: the circuit compares transitions
        tensor([[0.9000, 0.5000],
                [0.1000, 0.5000]], dtype=torch.float64)
        """
        return {}

    @torch.no_grad()
    def direct_attention(self) -> dict[str, dict[str, Float[Tensor, "query key"]]]:
        """Give where each head would look by tokens alone, and by positions alone: the softmax of `direct_scores`.

        Positions are offsets in a model that reads these.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.direct_attention()["1.1"]["token"].sum(dim=-1)
        tensor([1., 1.], dtype=torch.float64)
        """
        found: dict[str, dict[str, Tensor]] = {}
        for layer, count in enumerate(self.config.heads, 1):
            for name in (f"{layer}.{head}" for head in range(1, count + 1)):
                scores = {
                    what: value / self.config.temperature
                    for what, value in self.direct_scores(name).items()
                }
                if "position" in scores:
                    scores["position"] = mask_later(scores["position"])
                found[name] = {what: torch.softmax(value, dim=-1) for what, value in scores.items()}
        return found

    def _facts(self) -> Mapping[str, Any]:
        facts = {name: value for name, value in asdict(self.config).items() if value is not None}
        facts["weights"] = sum(weight.numel() for weight in self.parameters())
        return facts if self.circuit is None else {**facts, "circuit": self.circuit.target}
