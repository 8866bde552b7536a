"""`construct(task, ...)`: a disentangled transformer whose weights are written by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import torch

from sih.construction.bayes import LOG_ZERO, ROUNDING, best_tempering
from sih.construction.circuit import ZERO, Circuit, Evidence, Target, one_residue_a_head
from sih.construction.heads.fewer import head_offsets
from sih.construction.layers import set_first_layer, set_readout, set_second_layer, set_third_layer
from sih.models.disentangled.dense import DisentangledTransformer
from sih.task import Task

LIMIT = {torch.float64: 1e8, torch.float32: 1e4}
"""What stands for beta = infinity: gaps in the evidence above 40 / LIMIT are decided to the last digit."""
LEAK = 1e-6
"""The most attention that a mask may let through, in the worst case, before we refuse it."""


class ConstructedTransformer(DisentangledTransformer):
    """A disentangled transformer with the plan that its weights follow."""

    circuit: Circuit


def construct(
    task: Task,
    *,
    target: Target = "paper",
    third: Literal["mask", "position"] | None = None,
    heads: int | None = None,
    evidence: Evidence = "mean",
    sink: bool | None = None,
    lam: float | None = None,
    beta: float = 100.0,
    temper: float | None = None,
    symmetric: bool | None = None,
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
) -> ConstructedTransformer:
    r"""The selective induction head for this task, as weights.

    Args:
        target: "paper" is the circuit of Prop. 1, for any set of lags; "two-lags" the paper's single head for two lags;
            "bayes" the Bayesian model average up to `circuit.bound`.
        third: the paper's main form of the third layer ("mask", where every head takes one residue, as for contiguous
            lags) or the appendix's ("position", always possible). By default the former where it can be.
        heads: second-layer heads; the least number that loses nothing by default. With fewer, some past transitions go
            unused (`circuit.colours` has -1 for them); more are never needed.
        evidence: whether a lag's normalised probabilities are averaged (the paper's) or added up.
        sink: let second-layer heads rest on position 0, so that the closed form holds at every position from the first
            possible one. Always with evidence "sum"; the paper's circuit has none.
        lam: the masks' strength; 500, or as much as the scores need where evidence is summed.
        beta: inverse temperature of the third layer; math.inf for the limit. Set by the target "bayes".
        temper: exponent on the probabilities in the first layer, 1 in the paper. The target "bayes" chooses it.
        symmetric: two first-layer heads of opposite exponent (target "bayes"; by default in float32, which needs it).
        readout: P^T ("probability") or log P^T before a softmax ("logit", the paper's footnote).
        dtype: torch.float64 or torch.float32.
    """
    circuit = plan(
        task,
        target=target,
        third=third,
        heads=heads,
        evidence=evidence,
        sink=sink,
        lam=lam,
        beta=beta,
        temper=temper,
        symmetric=symmetric,
        dtype=dtype,
    )
    first_heads = 2 if circuit.symmetric else 1
    model = ConstructedTransformer(
        task.num_states,
        task.length,
        (first_heads, circuit.heads, 1),
        temperature=1.0,
        readout=readout,
        dtype=dtype,
        init="zeros",
    )
    model.circuit = circuit
    set_first_layer(model, task, circuit)
    set_second_layer(model, circuit)
    set_third_layer(model, task, circuit)
    set_readout(model, task, circuit, readout)
    return model.requires_grad_(False)


def plan(
    task: Task,
    *,
    target: Target,
    third: Literal["mask", "position"] | None,
    heads: int | None,
    evidence: Evidence,
    sink: bool | None,
    lam: float | None,
    beta: float,
    temper: float | None,
    symmetric: bool | None,
    dtype: torch.dtype,
) -> Circuit:
    """Everything about the circuit but its weights, checked."""
    if dtype not in LIMIT:
        raise ValueError(f"dtype is torch.float64 or torch.float32; got {dtype}")
    if not beta > 0:
        raise ValueError(f"beta is a positive inverse temperature (math.inf for the limit); got {beta}")
    if temper is not None and not (temper > 0 and math.isfinite(temper)):
        raise ValueError(f"temper is a positive exponent, 1 in the paper; got {temper}")
    if lam is not None and not (lam > 0 and math.isfinite(lam)):
        raise ValueError(f"lam is a positive mask strength, 500 in the paper; got {lam}")
    if target == "two-lags":
        return _two_lags(task, lam, beta, 1.0 if temper is None else temper, dtype, (third, heads, sink), evidence)
    if target not in ("paper", "bayes"):
        raise ValueError(f"target is 'paper', 'bayes' or 'two-lags'; got {target!r}")
    if evidence not in ("mean", "sum"):
        raise ValueError(f"evidence is 'mean' (the paper's) or 'sum'; got {evidence!r}")
    pattern = head_offsets(task.lags, heads) if heads is not None else head_offsets(task.lags, task.max_lag)
    bayes = target == "bayes"
    evidence = "sum" if bayes else evidence
    sink = evidence == "sum" if sink is None else sink
    if evidence == "sum" and not sink:
        raise ValueError("summed evidence needs the sink: without it a head averages; leave sink out")
    if third not in (None, "mask", "position"):
        raise ValueError(f"third is 'mask' or 'position'; got {third!r}")
    if third is None:
        third = "mask" if one_residue_a_head(pattern.colours) and not sink else "position"
    if third == "mask" and (sink or not one_residue_a_head(pattern.colours)):
        why = "with a sink" if sink else f"for the pattern {pattern.colours}"
        raise ValueError(f"the mask form needs heads that take one residue each and no sink, not {why}; use 'position'")
    symmetric = (bayes and dtype == torch.float32) if symmetric is None else symmetric
    if symmetric and not bayes:
        raise ValueError("two first-layer heads of opposite exponent serve the target 'bayes' only")
    bound, rounding = None, 0.0
    beta = LIMIT[dtype] if math.isinf(beta) else beta
    if bayes:
        chosen = best_tempering(task, pattern.heads, dtype, symmetric)
        temper = chosen.temper if temper is None else temper
        beta = len(task.lags) / temper
        if temper == chosen.temper:
            rounding = chosen.rounding
            bound = chosen.bound if -1 not in pattern.colours else None  # what goes unused is not bounded
    circuit = Circuit(
        target=target,
        third=third,
        lags=task.lags,
        length=task.length,
        colours=pattern.colours,
        heads=pattern.heads,
        evidence=evidence,
        sink=sink,
        lam=500.0 if lam is None else lam,
        beta=float(beta),
        temper=1.0 if temper is None else temper,
        log_zero=LOG_ZERO[dtype] if bayes else ZERO,
        symmetric=symmetric,
        prior=bayes,
        bound=bound,
        rounding=rounding,
    )
    return _checked(circuit, task, lam, dtype)


def _two_lags(
    task: Task,
    lam: float | None,
    beta: float,
    temper: float,
    dtype: torch.dtype,
    fixed: tuple[object, ...],
    evidence: Evidence,
) -> Circuit:
    if len(task.lags) != 2:
        raise ValueError(f"the target 'two-lags' is for two lags, e.g. (1, 3); got {task.lags}")
    if any(value is not None for value in fixed) or evidence != "mean":
        raise ValueError("the target 'two-lags' has one head, its own third layer and mean evidence; leave those out")
    d = task.lags[1] - task.lags[0]
    circuit = Circuit(
        target="two-lags",
        third="key",
        lags=task.lags,
        length=task.length,
        colours=(0,) * d + (-1,) * d,
        heads=1,
        evidence="mean",
        sink=False,
        lam=500.0 if lam is None else lam,
        beta=LIMIT[dtype] if math.isinf(beta) else float(beta),
        temper=temper,
        log_zero=ZERO,
        symmetric=False,
        prior=False,
        bound=None,
        rounding=0.0,
    )
    return _checked(circuit, task, lam, dtype)


def _checked(circuit: Circuit, task: Task, lam: float | None, dtype: torch.dtype) -> Circuit:
    """The circuit with masks strong enough; a ValueError if the ones asked for are not, or the length is too short."""
    if circuit.first_row >= circuit.length:
        raise ValueError(
            f"length {circuit.length} is too short: for the lags {circuit.lags} this circuit is right from position "
            f"{circuit.first_row} on; use a longer task, or evidence='sum', right from {circuit.max_lag - 1}"
        )
    needed = needed_lam(circuit, task)
    if lam is not None and lam < needed:
        raise ValueError(
            f"lam={lam:g} is too small: in the worst case more than {LEAK:g} of the attention would leave the allowed "
            f"positions, for P's smallest entry, the length and beta; use lam >= {math.ceil(needed)}"
        )
    circuit = replace(circuit, lam=max(500.0, needed) if lam is None else lam)
    return replace(circuit, rounding=circuit.rounding or rounding(circuit, dtype))


def rounding(circuit: Circuit, dtype: torch.dtype) -> float:
    """How far rounding may move an attention weight: `ROUNDING` units in the last place of the largest score, and the
    digits that the first layer's probabilities lose beside a mask of strength lam. A margin, not a theorem."""
    unit = torch.finfo(dtype).eps / 2
    strength = _strength(circuit)
    lost = 0.0 if circuit.sink else circuit.lam * strength
    return math.tanh(unit * (ROUNDING * (circuit.lam + strength) + lost) / 4) + 64 * unit


def needed_lam(circuit: Circuit, task: Task) -> float:
    r"""Masks that let through at most `LEAK`: e^{-2 lam} times what the other terms of a score can make up for.

    In layer 1 the wanted keys have together at least $p_{min}^\gamma$ (one of them is possible), the others at most 1
    each. In layer 2 all terms are masks, and a sink only adds weight to what is wanted. In layer 3 the blocks B meet
    vectors of non-negative numbers that sum to 1, so one key is ahead of another by no more than the sum of the
    heads' strengths (for two lags, where B has both signs, by twice that).
    """
    others = math.log(circuit.length / LEAK)
    logs = circuit.temper * torch.where(task.P > 0, task.P.log(), circuit.log_zero)
    possible = logs[task.P > 0] if circuit.log_zero == ZERO else logs
    first = -possible.min().item() if not circuit.symmetric else (logs.max() - logs.min()).item()
    return (others + max(first, _strength(circuit))) / 2


def _strength(circuit: Circuit) -> float:
    """The most by which the blocks B can put one key ahead of another."""
    if circuit.evidence == "sum":
        return circuit.beta * float(circuit.counts()[-1].clamp_min(1).sum())
    return circuit.beta * (2 if circuit.third == "key" else circuit.heads)
