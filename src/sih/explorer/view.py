"""`make_view`: everything that the page draws of a state, as arrays by name.

A view contains one sequence, its lag, and the output of each predictor and model at
every position. Blocks of the stream are products of the attention matrices
(`sih.models.disentangled.lazy_trace`), so the page computes those of the selected
position itself. A model with a start token is shown between tokens: its rows are those
of the tokens, and its attention to the start token is a number beside them (`start`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.circuits import Circuit
from sih.circuits.circuit_table import circuit_kind, circuits_of, option_names
from sih.explorer.circuit_choice import relative_model, resolve, written_blocks
from sih.explorer.head_ladder import ladder
from sih.explorer.state import ModelChoice, State
from sih.explorer.trained_models import Runs, fitting_model
from sih.heads.mixing import parabola_and_waves, progression
from sih.heads.profiles import centring
from sih.models.disentangled import written
from sih.models.offsets import attention_at
from sih.models.sites import Trace
from sih.predictors.evidence import lag_posterior
from sih.predictors.metrics import kl_to_truth
from sih.predictors.predictors import PREDICTORS, known_lag, selective_weights
from sih.task import Batch, Task, sample

FULL = 65535
"""The whole number that represents attention 1, in two bytes."""


@dataclass(frozen=True, eq=False)
class View:
    """The content of the page: words and a few numbers in `header`, all else in
    `arrays`.
    """

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class Pass:
    """The output of one model on the sequence."""

    trace: Trace
    law: Float[Tensor, "time state"]
    log_weights: Float[Tensor, "time lag"]
    """Logarithm of the last layer's attention to the token that each lag would copy."""
    parts: dict[str, Float[Tensor, "time state"]]
    """The contributions of each head and the embedding to the output, for a model whose
    stream has no blocks."""
    circuit: Circuit | None = None

    @property
    def attention(self) -> Float[Tensor, "head query key"]:
        """Return the attention between tokens of all heads, layer by layer."""
        time = self.trace.tokens.shape[1]
        return torch.cat(
            [torch.zeros(0, time, time), *(heads[0] for heads in self.trace.between_tokens)]
        )

    @property
    def start(self) -> Float[Tensor, "head query"] | None:
        """Return what each head pays the start token, None if there is none."""
        if not self.trace.first:
            return None
        return torch.cat([heads[0, :, 1:, 0] for heads in self.trace.attention])

    @property
    def by_offset(self) -> dict[str, Float[Tensor, "time offset"]]:
        """Return the blocks of a circuit's stream that hold evidence by offset, by name."""
        if self.circuit is None or not self.trace.first:
            return {}
        blocks = (*(f"{head}/offset" for head in self.circuit.exponents),)
        names = (*blocks, *(f"2.1/{name}" for name in blocks))
        return {name: self.trace[name][0, self.trace.first :] for name in names}


def draw_sequence(state: State, task: Task) -> Batch:
    """Return the sequence of this seed, with edited tokens replaced."""
    batch = sample(task, 1, rng=torch.Generator().manual_seed(state.seed))
    for position, token in state.edits:
        batch.tokens[0, position] = token
    return batch


def make_view(state: State, runs: Runs) -> View:
    """Return everything that the page draws of a state; raise a `FieldError` if an
    entry does not fit.
    """
    task = state.task()
    batch = draw_sequence(state, task)
    laws, weights = _references(batch, task, state.models[0])
    passes = [
        run_model(index, choice, task, batch.tokens[0], runs)
        for index, choice in enumerate(state.models)
    ]
    arrays: dict[str, Any] = {"tokens": batch.tokens[0].to(torch.uint8)}
    for name, law in laws.items():
        arrays[f"law/{name}"] = law[0].float()
        if name != "truth":
            arrays[f"kl/{name}"] = kl_to_truth(law, batch, task)[0].float()
    for name, weight in weights.items():
        arrays[f"log_weights/{name}"] = weight[0].log().float()
    for index, done in enumerate(passes):
        arrays[f"attention/{index}"] = (done.attention * FULL).round().to(torch.uint16)
        if done.circuit is not None and done.circuit.sink:
            arrays[f"beside/{index}"] = _beside_sink(done.trace.attention[1][0])
        if done.start is not None:
            arrays[f"start/{index}"] = done.start.float()
            if done.circuit is not None:
                arrays[f"beside/{index}"] = _beside(done.trace.between_tokens[1][0])
        for name, block in done.by_offset.items():
            arrays[f"block/{index}/{name}"] = block.float()
        arrays[f"log_weights/{index}"] = done.log_weights.float()
        arrays[f"law/{index}"] = done.law.float()
        arrays[f"kl/{index}"] = kl_to_truth(done.law[None].double(), batch, task)[0].float()
        for name, part in done.parts.items():
            arrays[f"part/{index}/{name}"] = part.float()
        for name, part in _mixed(done.circuit).items():
            arrays[f"mixed/{index}/{name}"] = part.float()
    header = {
        "lag": int(batch.lags[0]),
        "P": task.P.tolist(),
        "stationary": task.stationary.tolist(),
        "predictors": {name: one.label for name, one in PREDICTORS.items() if one.yardstick},
        "models": [
            _described(choice, done) for choice, done in zip(state.models, passes, strict=True)
        ],
    }
    return View(header, {name: array.numpy() for name, array in arrays.items()})


def run_model(
    index: int, choice: ModelChoice, task: Task, tokens: Int[Tensor, " time"], runs: Runs
) -> Pass:
    """Return the output of a model on the sequence: a trained one, or a circuit from
    its written blocks.
    """
    where = f"models.{index}"
    if choice.trained:
        model = fitting_model(where, str(choice.name), task, runs)
        with torch.no_grad():
            trace = model.trace(tokens[None])
            parts = {name: part[0] for name, part in model.contributions(trace).items()}
            return Pass(
                trace,
                model.law(trace.output)[0],
                _copied(trace, model.config.temperature, task),
                parts,
            )
    circuit = resolve(where, choice, task)
    if choice.relative:
        trace = relative_model(where, choice, task).trace(tokens[None])
        return Pass(trace, trace.output[0], _copied(trace, 1.0, task), {}, circuit)
    trace = written.run(written_blocks(where, choice, task), tokens[None])
    return Pass(trace, trace.output[0], _copied(trace, 1.0, task), {}, circuit)


def _references(
    batch: Batch, task: Task, choice: ModelChoice
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the reference distributions, and the lags' weights (the estimator with the
    first model's sliders).
    """
    try:
        laws = {"truth": known_lag(batch.tokens, batch.lags, task)}
        laws |= {
            name: one.law(batch.tokens, task) for name, one in PREDICTORS.items() if one.yardstick
        }
        selective = selective_weights(batch.tokens, task, **_estimator_options(choice))
        weights = {"posterior": lag_posterior(batch.tokens, task), "selective": selective}
    except ValueError as error:  # an edit that no lag allows, if P has zeros
        raise FieldError("edits", str(error)) from error
    return laws, weights


def _estimator_options(choice: ModelChoice) -> dict[str, Any]:
    """Return the options of the paper's estimator, set by the sliders of a circuit with
    its temperature.
    """
    options = {"target": "paper"} if choice.trained else {"target": "paper", **choice.options()}
    circuits = circuits_of(options.get("kind", "disentangled"))
    if "beta" not in option_names(circuit_kind(circuits, options["target"])):
        return {}
    return {name: options[name] for name in ("beta", "temper", "evidence") if name in options}


def _copied(trace: Trace, temperature: float, task: Task) -> Float[Tensor, "time lag"]:
    """Return the logarithm of the last layer's attention to each lag's candidate,
    averaged over heads.
    """
    if not trace.scores:  # a model without attention copies no token
        return torch.full((trace.tokens.shape[1], len(task.lags)), -torch.inf, dtype=torch.float64)
    scores = trace.scores[-1][0].double() / temperature
    log_attention = torch.log_softmax(scores, dim=-1).logsumexp(dim=0) - np.log(len(scores))
    log_attention = log_attention[trace.first :, trace.first :]
    return attention_at(log_attention, [lag - 1 for lag in task.lags], absent=-torch.inf)


def _described(choice: ModelChoice, done: Pass) -> dict[str, Any]:
    """Return the page's facts on a model: its heads, and the positions of a circuit's
    sliders.
    """
    said = {"kind": choice.kind, "heads": done.trace.heads, "start": bool(done.trace.first)}
    if done.circuit is None:
        return {**said, "name": choice.name}
    names = ("lam", "beta", "temper", "looking", "sink")
    sliders = {name: getattr(done.circuit, name, 0.0) for name in names}
    return {
        **said,
        "ladder": ladder(choice, done.circuit),
        **sliders,
        "parabola": _parabola(done.circuit),
    }


def _parabola(circuit: Circuit) -> float | None:
    """Return c of the parabola -c x² in the closed form with which the circuit's heads
    mix lags, or None.
    """
    profile = circuit.mixing
    if profile is None or profile.reads_keys or len(circuit.lags) < 2:
        return None
    step, count = progression(circuit.lags)
    return parabola_and_waves(count)[0] / step**2


def _beside_sink(attention: Float[Tensor, "head query key"]) -> Tensor:
    """Return attention to keys other than the sink, divided by its maximum (which may
    be tiny).
    """
    others = attention.clone()
    others[..., 0] = 0
    return _beside(others)


def _beside(others: Float[Tensor, "head query key"]) -> Tensor:
    """Return what heads pay keys as shares of the most that each pays one."""
    return (
        (others / others.amax(dim=(1, 2), keepdim=True).clamp_min(1e-300) * FULL)
        .round()
        .to(torch.uint16)
    )


def _mixed(circuit: Circuit | None) -> dict[str, Tensor]:
    """Return the weights and reads of heads that mix lags, and the resulting weight of
    the evidence.

    `counted` is J F_o J, the weight of a transition's evidence at each offset
    (`sih.heads.profiles`). Its ideal value is J, and `residual` is the distance from
    it.
    """
    profile = None if circuit is None else circuit.mixing
    if profile is None:
        return {}
    found = {"weights": profile.weights, "query": profile.query, "residual": profile.residual}
    found["counted"] = profile.deviations + centring(len(profile.lags))
    if profile.key is not None and profile.reads_keys:
        found["key"] = profile.key
    return found
