"""The base of every kind of model: predictions, traces, interventions and notes.

A kind is a subclass of `Model` with a line in `sih.models.KINDS`. It defines
`equations(tokens, site)`, which calls `site(name, value)` at each activation.
Everything else here follows from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

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

ModelT = TypeVar("ModelT", bound="Model")


@dataclass(frozen=True)
class ModelConfig:
    """Everything that shapes a model, apart from its weights. A kind adds its shape."""

    num_states: Size
    length: Size | None
    """The longest sequence, or None for a kind with no limit.

    Such a kind's constructor and files do not have this field.
    """
    heads: tuple[Size, ...] = ()
    """Number of heads of each layer; () for a model without attention."""
    temperature: Temperature = 1.0
    """Divisor of the attention scores."""
    readout: Annotated[str, Among(READOUTS)] = "logit"
    """The output: "logit" (a softmax makes it probabilities) or "probability"."""
    dtype: Annotated[str, Among(DTYPES)] = "float32"

    def __post_init__(self) -> None:
        check(self)

    def entries(self) -> dict[str, Any]:
        """Return the constructor's arguments, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}


@dataclass(frozen=True)
class BoundedConfig(ModelConfig):
    """The configuration of a model with a weight for every position, up to a length."""

    length: Size


@dataclass(frozen=True)
class ModelShape(ABC):
    """The sizes of a model that a task does not fix, as chosen for a training run.

    A kind adds its fields. They are flags of `sih train` and entries of a run's
    `config.json`, by the names that they have as arguments of the kind's constructor.
    """

    kind: ClassVar[str]
    """The kind's name, in flags, in configurations on disk and in
    `sih.models.KINDS`."""

    def __post_init__(self) -> None:
        check(self)

    @abstractmethod
    def build(
        self, num_states: int, length: int, *, init: str = "zeros", rng: Seed | None = None
    ) -> Model:
        """Return a model of this shape for a task of these sizes.

        `init` says how weights are drawn.
        """


def check_model(model: object) -> None:
    """Raise a FieldError unless the object is a model."""
    check_kind("model", model, Model, "a model, e.g. sih.Transformer(num_states=5, length=128)")


class Model(Drawn, nn.Module, ABC):
    """A model that predicts the next token at every position of a sequence.

    It is made from its `Config`, and from `init` and `rng`, which give the weights.
    `init="zeros"` is for weights to be set later. The constructors of `sih` take the
    fields of the Config instead (`dtype` as torch's). A kind defines `make_weights`,
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
    """The values of `init` that draw random weights, beside "zeros"."""
    paths: ClassVar[tuple[str, ...]]
    """Backends, which agree up to rounding: the fastest first, the equations last."""
    large_products: ClassVar[bool] = False
    """Whether its matrix products are large enough to use several threads. If not, each
    thread works on different sequences."""
    scores_from_stream: ClassVar[bool] = True
    """Whether a score is a bilinear form of the stream at query and key, and of nothing
    else."""
    first: int = 0
    """The row of token 0 in the activations: 1 if a start token comes before the
    sequence."""

    config: ModelConfig
    points: HookPoints
    notes: dict[str, Any]
    """Plain JSON about the model, saved beside its weights."""
    circuit: Any = None
    """The circuit that the weights implement, if `sih.construct` wrote them."""

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
        """Make all weights, with zeros, in the sizes of `self.config`."""

    def draw(self, init: str, rng: torch.Generator) -> None:
        """Draw random weights, in the way that `init` (one of `draws`) names."""

    def _value_names(self) -> list[str]:
        """Return the names of the activations, which are those of hook points."""
        recorder = PassRecorder()
        token = torch.zeros(1, 1, dtype=torch.int64, device=self.device)
        with torch.no_grad():
            self.equations(token, recorder)
        return list(recorder.values)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return next(self.parameters()).device

    @classmethod
    def from_config(cls: type[ModelT], config: ModelConfig) -> ModelT:
        """Return a model of this configuration with all weights zero.

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
        """Return the number of weights of a configuration, without making them.

        With it no file makes a program take more memory than there is. The number is 0
        if a kind does not implement it.
        """
        return 0

    @abstractmethod
    def equations(
        self, tokens: Int[Tensor, "batch time"], site: Site
    ) -> Float[Tensor, "batch time state"]:
        """Return the output by the equations.

        They apply `value = site(name, value)` at each activation.
        """

    def fast(
        self, tokens: Int[Tensor, "batch time"], path: str
    ) -> Float[Tensor, "batch time state"]:
        """Return the same output by one of the other backends in `paths`."""
        raise NotImplementedError(f"{type(self).__name__} has no path {path!r}")

    def named_values(self, tokens: Int[Tensor, "batch time"], path: str) -> Mapping[str, Tensor]:
        """Return the activations of a pass, for `trace`.

        A kind may override it to compute them with less work.
        """
        values = self.run(tokens).values
        return (
            values
            if torch.is_grad_enabled()
            else {name: value.detach() for name, value in values.items()}
        )

    def forward(self, tokens: Tokens, path: str | None = None) -> Float[Tensor, "batch time state"]:
        """Return the output of the last linear map.

        Sequences may be shorter than `length`. With hooks, the equations are the
        default backend, and the only one.

        Args:
            tokens: (batch, time), the sequences.
            path: the backend, one of `paths`. Default: the fastest on this machine.

        Returns:
            The output, (batch, time, state): logits or probabilities, according to
            `readout`.
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
        """Return whether a pass with gradients should be split into parts of the batch.

        Only gradients of the parameters count. A pass is not split if one of them was
        replaced by a tensor of another kind.
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
        """Return the backend of a call with these tokens.

        Raises a FieldError if `path` cannot be used.
        """
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
        """Return the default backend, the fastest on this machine.

        Passes that torch compiles, traces or transforms (`torch.func`, `vmap`) use the
        equations.
        """
        return self.paths[0]

    def predict(self, tokens: Tokens, path: str | None = None) -> Float[Tensor, "batch time state"]:
        r"""Return the distribution of the next token at every position.

        At position i it is $\hat p(s_{i+1} \mid s_{0:i})$.

        Args:
            tokens: (batch, time), with time up to the model's length.
            path: the backend, one of `paths`. Default: the fastest on this machine.

        Returns:
            The distributions, (batch, time, state).

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.predict(torch.tensor([[0, 1, 1, 1]]))[0, -1]
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        return self.law(self(tokens, path=path))

    def law(self, output: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch state"]:
        """Return outputs as distributions: the softmax of logits, or probabilities.

        >>> import sih
        >>> sih.Transformer(num_states=2, length=16).law(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
        """
        return output if self.config.readout == "probability" else torch.softmax(output, dim=-1)

    def trace(self, tokens: Tokens, path: str | None = None, *, detach: bool = True) -> Trace:
        """Return all activations of a pass, by name (see `sih.models.sites`).

        Args:
            tokens: (batch, time), the sequences.
            path: the backend, one of `paths`. Default: the fastest on this machine.
            detach: whether to drop gradients. The activations of `run` always keep
                them.

        Returns:
            The trace: `trace["2.1/attention"]` is one activation.

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
        """Return the trace of a pass with some activations replaced.

        All later activations are recomputed.

        Args:
            tokens: (batch, time), the sequences.
            replace: by name, a tensor or number, or a function of the original
                activation.

        Returns:
            The trace of the changed pass.

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
        """Return the submodule of each activation, by name (`sih.models.sites`).

        Hooks on it read and change the activation in every pass, as `run(replace=...)`
        does. With hooks, a pass uses the equations. Tools that search for submodules
        find them by these names, except for "/token", "/position" and "/output"
        (`sih.models.hooks`). `next_token_loss` works on parts of a batch, and calls a
        hook for each part.
        """
        return self.points.modules()

    def get_submodule(self, target: str) -> nn.Module:
        return super().get_submodule(module_name(target))

    def _checked(self, tokens: Tokens) -> Int[Tensor, "batch time"]:
        return check_tokens(tokens, self.config.num_states, self.config.length)

    def writers(self, layers: int) -> tuple[str, ...]:
        """Return the names of the stream's parts after this number of layers.

        Unless a kind overrides it, the stream is a sum: of all activations before
        `0/stream`, and of the outputs of heads and MLPs.

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
        """Return the columns of an activation in the stream, or of `0/stream`.

        In a stream that is a sum these are all columns.

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
        """Return a head's scores of keys `offset` positions before queries.

        They are scores before the temperature. Queries and keys are vectors of the
        stream that the head reads. Unless a kind overrides it, the equations are run
        with them in place of the head's inputs.

        Args:
            head: its name, e.g. "2.1".
            query: (query, dim), vectors for the query.
            key: (key, dim), vectors for the key.
            offset: the distance from each query back to each key.

        Returns:
            The scores, (query, key).

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
        """Return each written activation's contribution to the output.

        Only kinds with a stream that is a sum have contributions.

        >>> import sih
        >>> model = sih.Transformer(num_states=2, length=16, heads=(1, 1), dim=8, qk_dim=4)
        >>> trace = model.trace(torch.tensor([[0, 1, 1, 0]]))
        >>> parts = model.contributions(trace)
        >>> list(parts), torch.allclose(sum(parts.values()), trace.output, atol=1e-6)
        (['token', 'position', '1.1/output', '2.1/output'], True)
        """
        return {}

    def direct_scores(self, head: str) -> dict[str, Float[Tensor, "query key"]]:
        """Return a head's scores between two tokens and between two positions.

        The stream has nothing else. This is Elhage et al.'s full QK circuit, by "token"
        and "position" (or by "offset", one row per token). It is empty if a kind does
        not implement it.

        >>> import sih
        >>> model = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16))
        >>> model.direct_scores("1.1")["token"].exp()  # P transposed: the circuit compares transitions
        tensor([[0.9000, 0.5000],
                [0.1000, 0.5000]], dtype=torch.float64)
        """
        return {}

    @torch.no_grad()
    def direct_attention(self) -> dict[str, dict[str, Float[Tensor, "query key"]]]:
        """Return each head's attention by tokens alone and by positions alone.

        It is the softmax of `direct_scores`. Positions are offsets in a model that
        reads these.

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
