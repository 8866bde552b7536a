r"""Scores edges by how much they matter, as methods that look for circuits do, and judges the scores.

Pairs of sequences differ in their lag. The metric M says how far the law of the next token follows the clean lag and
not the other one, on the clean tokens. With $\Delta_u$ what a source u holds on the corrupt tokens less what it holds
on the clean ones, the score of the edge from u into the reader v is

    exact           M(clean) - M(v alone reads u from the corrupt run)            edge patching, a pass for each edge
    eap             $\Delta_u \cdot \partial M / \partial v$ at the clean run     edge attribution (Syed et al., 2023)
    eap-ig          the same, the gradient averaged on the way to the corrupt inputs      (Hanna et al., 2024; 5 steps)
    atp*            $\Delta$attention $\cdot\, \partial M / \partial$attention for queries and keys, the softmax
                    computed anew; as eap for the rest                            (after Kramar et al., 2024)
    attribution     the sum of eap over the readers of u: a score of nodes        attribution patching (Nanda, 2023)

Methods are written against `Model.run`, for any kind of model: a source is what the stream holds (`Model.writers`), a
block of a disentangled one or what a head added to one that is a sum.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.interventions import values_until
from sih.base.errors import FieldError, check_choice, check_kind, check_sizes
from sih.base.showing import Shown
from sih.beyond.discovery.edges import Edge, candidate_edges, layers_before, readers
from sih.models.base import Model, check_model
from sih.models.sites import Replacement, Trace
from sih.predictors.evidence import lag_posterior
from sih.predictors.predictors import known_lag
from sih.task import Batch, Task, check_task, sample

STEPS, CANDIDATES = 5, 32
Deltas = Mapping[str, Float[Tensor, "batch row _"]]
TOLERANCE = 1e-3
"""How far edges may be from what is read, that they add up to, relative to the largest."""


@dataclass(frozen=True, eq=False)
class Pairs(Shown):
    """Holds clean sequences and, row by row, the corrupt ones: drawn by the same numbers, with another lag."""

    clean: Batch
    corrupt: Batch
    task: Task

    def metric(self, law: Float[Tensor, "batch time state"]) -> Float[Tensor, ""]:
        r"""Average $\sum_s (p_s - p'_s)\,q_s$ over the last quarter of the positions, where the lag is known best.

        q is the law, p the true one on the clean tokens and p' that of the corrupt lag on them.
        """
        tokens, task = self.clean.tokens, self.task
        direction = known_lag(tokens, self.clean.lags, task) - known_lag(
            tokens, self.corrupt.lags, task
        )
        return (direction.to(law) * law).sum(dim=-1)[:, -(tokens.shape[1] // 4) :].mean()


def counterfactual_pairs(task: Task, size: int, *, seed: int = 0) -> Pairs:
    """Draw `size` pairs for each two lags of the task, either of them the clean one.

    The same numbers draw both sequences of a pair, which so share tokens where they can. Of `CANDIDATES` times as many
    pairs those are kept in which each sequence tells its own lag best.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2, 3), length=32)
    >>> pairs = sih.counterfactual_pairs(task, size=2)
    >>> pairs.clean.lags.tolist(), pairs.corrupt.lags.tolist()
    ([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], [2, 2, 3, 3, 1, 1, 3, 3, 1, 1, 2, 2])
    """
    check_task(task, Task)
    check_sizes(size=size)
    if len(task.lags) < 2:
        raise FieldError("task", f"pairs differ in their lag; the task has one, {task.lags}")
    drawn = {lag: sample(task, CANDIDATES * size, rng=seed, lag=lag) for lag in task.lags}
    told = {
        lag: lag_posterior(drawn[lag].tokens, task)[:, -1, task.lags.index(lag)]
        for lag in task.lags
    }
    sides: tuple[list[Batch], list[Batch]] = ([], [])
    for lags in itertools.permutations(task.lags, 2):
        best = torch.minimum(*(told[lag] for lag in lags)).argsort(descending=True, stable=True)[
            :size
        ]
        for side, lag in zip(sides, lags, strict=True):
            side.append(drawn[lag][best])
    clean, corrupt = (
        Batch(torch.cat([b.tokens for b in side]), torch.cat([b.lags for b in side]))
        for side in sides
    )
    return Pairs(clean, corrupt, task)


def edge_scores(model: Model, pairs: Pairs, method: str) -> dict[Edge, float]:
    """Score every edge of the model by how much it matters: what is lost where it carries the other sequence's data.

    Args:
        model: without MLPs.
        pairs: sequences that differ in their lag.
        method: one of `METHODS`: "exact", "eap", "eap-ig", "atp*" or "attribution".

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.2, 0.8]], lags=(1, 2), length=16)
    >>> scores = sih.edge_scores(sih.construct(task, beta=3.0), sih.counterfactual_pairs(task, size=1), "eap")
    >>> best = max(scores, key=lambda edge: abs(scores[edge]))
    >>> best.source, best.reader
    ('token', '3.1/value')
    """
    check_model(model)
    check_kind(
        "pairs", pairs, Pairs, "pairs of sequences, e.g. sih.counterfactual_pairs(task, size=2)"
    )
    check_choice("method", method, tuple(METHODS))
    with torch.enable_grad():
        return METHODS[method](model, pairs)


def exact(model: Model, pairs: Pairs, edges: Sequence[Edge] | None = None) -> dict[Edge, float]:
    """Patch one edge at a time."""
    tokens = pairs.clean.tokens
    with torch.no_grad():
        deltas = _deltas(model, pairs)
        whole = pairs.metric(model.predict(tokens, path=model.paths[-1]))
        return {
            edge: float(whole - pairs.metric(patch_edges(model, tokens, [edge], deltas)))
            for edge in edges or candidate_edges(model)
        }


def patch_edges(
    model: Model, tokens: Int[Tensor, "batch time"], edges: Sequence[Edge], deltas: Deltas
) -> Float[Tensor, "batch time state"]:
    """Predict with the readers of these edges, and them alone, reading each source with its delta added."""
    replace: dict[str, Replacement] = {}
    for reader in {edge.reader for edge in edges}:
        added = [(edge.source, deltas[edge.source]) for edge in edges if edge.reader == reader]
        replace[reader] = partial(_added, model, reader, added)
    return model.law(model.run(tokens, replace=replace).output)


def eap(model: Model, pairs: Pairs) -> dict[Edge, float]:
    deltas = _deltas(model, pairs)
    return _products(model, deltas, _gradients(model, pairs, 0.0)[0])


def eap_ig(model: Model, pairs: Pairs) -> dict[Edge, float]:
    deltas = _deltas(model, pairs)
    steps = [_gradients(model, pairs, (step + 0.5) / STEPS)[0] for step in range(STEPS)]
    mean = {
        reader: torch.stack([step[reader] for step in steps]).mean(dim=0) for reader in steps[0]
    }
    return _products(model, deltas, mean)


def attribution(model: Model, pairs: Pairs) -> dict[Edge, float]:
    scores, nodes = eap(model, pairs), dict[str, float]()
    for edge, score in scores.items():
        nodes[edge.source] = nodes.get(edge.source, 0.0) + score
    return {edge: nodes[edge.source] for edge in scores}


def atp_star(model: Model, pairs: Pairs) -> dict[Edge, float]:
    deltas = _deltas(model, pairs)
    gradients, trace = _gradients(model, pairs, 0.0)
    scores = _products(model, deltas, gradients)
    with torch.no_grad():
        for edge in scores:
            head, _, use = edge.reader.partition("/")
            if use in ("query", "key"):
                read = _added(
                    model, edge.reader, [(edge.source, deltas[edge.source])], trace[edge.reader]
                )
                name = f"{head}/attention"
                attention = values_until(model, trace.tokens, {edge.reader: read}, [name])[name]
                scores[edge] = -float(((attention - trace[name]) * gradients[name]).sum())
    return scores


METHODS: dict[str, Callable[[Model, Pairs], dict[Edge, float]]] = {
    "exact": exact,
    "eap": eap,
    "eap-ig": eap_ig,
    "atp*": atp_star,
    "attribution": attribution,
}


@dataclass(frozen=True)
class Judgement:
    """Says how well scores tell the edges of a circuit from the others.

    `area` is that under the ROC curve: the chance that a true edge has the larger score, ties counting half (0.5 by
    guessing). `precision` is the expected share of true edges among as many as there are, ties broken at random
    (`guessed` by guessing). `ties` is the share of pairs of a true and another edge that have equal scores.
    """

    area: float
    precision: float
    guessed: float
    ties: float
    true: int
    others: int


def judge(scores: Mapping[Edge, float], truth: Sequence[Edge]) -> Judgement:
    """Judge the sizes of scores by the edges that carry data. Masks count as neither."""
    roles = {(edge.source, edge.reader): edge.role for edge in truth}
    found = {edge: roles.get((edge.source, edge.reader), "") for edge in scores}
    true = torch.tensor(
        [abs(scores[edge]) for edge, role in found.items() if role not in ("", "mask")]
    )
    others = torch.tensor([abs(scores[edge]) for edge, role in found.items() if role == ""])
    if not len(true) or not len(others):
        raise FieldError(
            "truth",
            f"there must be edges of both kinds; got {len(true)} true and {len(others)} others",
        )
    above, equal = (
        (true[:, None] > others).double().mean(),
        (true[:, None] == others).double().mean(),
    )
    count, every = len(true), torch.cat([true, others])
    least = every.sort(descending=True).values[count - 1]
    sure, tied = int((true > least).sum()), int((true == least).sum())
    room = count - int((every > least).sum())
    precision = (sure + tied * room / int((every == least).sum())) / count
    return Judgement(
        float(above + equal / 2), precision, count / len(every), float(equal), count, len(others)
    )


def roc(scores: Mapping[Edge, float], truth: Sequence[Edge]) -> tuple[list[float], list[float]]:
    """Give the ROC curve, false and true positive rates from the highest score down. Ties are straight lines."""
    roles = {(edge.source, edge.reader): edge.role for edge in truth}
    judged = [(abs(score), roles.get((e.source, e.reader), "")) for e, score in scores.items()]
    judged = [(score, role) for score, role in judged if role != "mask"]
    true = sum(role != "" for _, role in judged)
    false_rates, true_rates = [0.0], [0.0]
    for level in sorted({score for score, _ in judged}, reverse=True):
        above = [role for score, role in judged if score >= level]
        true_rates.append(sum(role != "" for role in above) / true)
        false_rates.append(sum(role == "" for role in above) / (len(judged) - true))
    return false_rates, true_rates


def _deltas(model: Model, pairs: Pairs) -> Deltas:
    """Give what each source holds on the corrupt tokens less what it holds on the clean ones."""
    clean, corrupt = (
        model.trace(batch.tokens, path=model.paths[-1]) for batch in (pairs.clean, pairs.corrupt)
    )
    names = {edge.source for edge in candidate_edges(model)}
    deltas = {name: corrupt[name] - clean[name] for name in names}
    for reader in readers(model):
        whole = corrupt[reader] - clean[reader]
        sources = model.writers(layers_before(model, reader))
        added = [(name, deltas[name]) for name in sources]
        missed = (_added(model, reader, added, torch.zeros_like(whole)) - whole).abs().max()
        if missed > TOLERANCE * max(deltas[name].abs().max() for name in sources):
            raise FieldError(
                "model",
                f"edges miss what {reader} reads by {missed:.2g}: edge_scores needs a stream that is the sum of "
                "what heads write, or is disentangled, read as it is",
            )
    return deltas


def _gradients(model: Model, pairs: Pairs, way: float) -> tuple[dict[str, Tensor], Trace]:
    """Differentiate M by what each reader reads and by each attention, `way` (0 to 1) from clean to corrupt inputs."""
    tokens = pairs.clean.tokens
    edges = candidate_edges(model)
    leaves: dict[str, Tensor] = {}

    def leaf(name: str, value: Tensor) -> Tensor:
        leaves[name] = torch.zeros_like(value).requires_grad_()
        return value + leaves[name]

    heads = {edge.reader.partition("/")[0] for edge in edges if "." in edge.reader}
    replace: dict[str, Replacement] = {
        name: partial(leaf, name)
        for name in {*(edge.reader for edge in edges), *(f"{h}/attention" for h in heads)}
    }
    if way:
        with torch.no_grad():
            clean, corrupt = (
                model.run(batch.tokens)["token"] for batch in (pairs.clean, pairs.corrupt)
            )
        replace["token"] = torch.lerp(clean, corrupt, way)
    trace = model.run(tokens, replace=replace)
    found = torch.autograd.grad(pairs.metric(model.law(trace.output)), list(leaves.values()))
    return dict(zip(leaves, found, strict=True)), trace


def _products(model: Model, deltas: Deltas, gradients: Mapping[str, Tensor]) -> dict[Edge, float]:
    """Multiply each source's delta with its reader's gradient. A drop of M is positive, as in `exact`."""
    scores = {}
    for edge in candidate_edges(model):
        columns = model.columns(edge.source, layers_before(model, edge.reader))
        scores[edge] = -float((deltas[edge.source] * gradients[edge.reader][..., columns]).sum())
    return scores


def _added(model: Model, reader: str, added: Sequence[tuple[str, Tensor]], value: Tensor) -> Tensor:
    """Return what a reader reads with something added to some sources."""
    value, layers = value.clone(), layers_before(model, reader)
    for source, delta in added:
        value[..., model.columns(source, layers)] += delta
    return value
