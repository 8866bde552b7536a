r"""Scores of edges by their importance, by several methods of circuit discovery, and
the quality of these scores.

Pairs of sequences differ in their lag. The metric M measures how far the predictions
follow the clean lag rather than the other one, on the clean tokens. Let $\Delta_u$ be
the activation of a source u on the corrupt tokens, minus that on the clean ones. The
score of the edge from u into the reader v is

    exact           M(clean) - M(v alone reads u from the corrupt run)            edge patching, a pass for each edge
    eap             $\Delta_u \cdot \partial M / \partial v$ at the clean run     edge attribution (Syed et al., 2023)
    eap-ig          the same, the gradient averaged on the way to the corrupt inputs      (Hanna et al., 2024; 5 steps)
    atp*            $\Delta$attention $\cdot\, \partial M / \partial$attention for queries and keys, the softmax
                    computed anew; as eap for the rest                            (after Kramar et al., 2024)
    attribution     the sum of eap over the readers of u: a score of nodes        attribution patching (Nanda, 2023)

Methods use `Model.run` and work for any kind of model. A source is a part of the stream
(`Model.writers`): a block of a disentangled stream, or the output of a head in a stream
that is a sum.
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
"""Largest relative difference between the sum of the edges and the activation that is
read."""


@dataclass(frozen=True, eq=False)
class Pairs(Shown):
    """Clean sequences and, row by row, corrupt ones: drawn with the same random
    numbers, but another lag.
    """

    clean: Batch
    corrupt: Batch
    task: Task

    def metric(self, law: Float[Tensor, "batch time state"]) -> Float[Tensor, ""]:
        r"""Return the mean of $\sum_s (p_s - p'_s)\,q_s$ over the last quarter of the
        positions, where the lag is known best.

        q is the prediction, p the true distribution on the clean tokens, and p' that of
        the corrupt lag on them.
        """
        tokens, task = self.clean.tokens, self.task
        direction = known_lag(tokens, self.clean.lags, task) - known_lag(
            tokens, self.corrupt.lags, task
        )
        return (direction.to(law) * law).sum(dim=-1)[:, -(tokens.shape[1] // 4) :].mean()


def counterfactual_pairs(task: Task, size: int, *, seed: int = 0) -> Pairs:
    """Return pairs of sequences that differ in their lag: `size` pairs for each ordered
    pair of lags.

    The same random numbers generate both sequences of a pair, so they share tokens
    where possible. The function draws `CANDIDATES` times as many pairs, and keeps those
    in which each sequence identifies its true lag best.

    Args:
        task: The task.
        size: Number of pairs for each clean and corrupt lag.
        seed: Random seed.

    Returns:
        Clean and corrupt batches with equal shapes, (pair, time).

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
    """Return a score of importance for every edge: the drop of the metric if it uses
    the corrupt sequence's data.

    Args:
        model: A model without MLPs.
        pairs: Sequences that differ in their lag.
        method: One of `METHODS`: "exact", "eap", "eap-ig", "atp*" or "attribution".

    Returns:
        A dict from edge to score; large positive scores are important.

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
    """Return the scores from patching one edge at a time."""
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
    """Return predictions in which only the readers of these edges read their sources
    with the deltas added.
    """
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
    """Quality of scores at distinguishing the edges of a circuit from the others.

    `area` is the area under the ROC curve: the probability that a true edge has the
    larger score, ties counting half (0.5 by guessing). `precision` is the expected
    share of true edges among the top scores, as many as there are true edges, with ties
    broken at random (`guessed` by guessing). `ties` is the share of pairs of a true and
    another edge with equal scores.
    """

    area: float
    precision: float
    guessed: float
    ties: float
    true: int
    others: int


def judge(scores: Mapping[Edge, float], truth: Sequence[Edge]) -> Judgement:
    """Return the quality of the absolute scores, for edges with data. Masks count as
    neither.
    """
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
    """Return the ROC curve: false and true positive rates from the highest score down.
    Ties are straight lines.
    """
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
    """Return each source's activation on the corrupt tokens minus that on the clean
    ones.
    """
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
    """Return the gradients of M with respect to each reader's input and each attention,
    `way` (0 to 1) towards corrupt inputs.
    """
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
    """Return the products of each source's delta with its reader's gradient; positive
    for a drop of M, as in `exact`.
    """
    scores = {}
    for edge in candidate_edges(model):
        columns = model.columns(edge.source, layers_before(model, edge.reader))
        scores[edge] = -float((deltas[edge.source] * gradients[edge.reader][..., columns]).sum())
    return scores


def _added(model: Model, reader: str, added: Sequence[tuple[str, Tensor]], value: Tensor) -> Tensor:
    """Return a reader's input with something added to some sources."""
    value, layers = value.clone(), layers_before(model, reader)
    for source, delta in added:
        value[..., model.columns(source, layers)] += delta
    return value
