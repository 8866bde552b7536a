"""Attention with relative positions, and its circuits, in numpy. Shares no code with `sih`.

The kind is that of docs/proofs/relative_circuit.md: position 0 is a start token, the stream has
blocks by name, and a head has one matrix for each pair of a query block and a key block. The key
block "offset" is the one-hot of min(i - j, reach).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Lags = tuple[int, ...]
LOG_ZERO = -100.0


@dataclass(eq=False)
class RelativeKind:
    """Weights by block; what is not named is 0."""

    states: int
    reach: int
    heads: tuple[int, ...]
    scores: dict[tuple[str, str, str], Array] = field(default_factory=dict)
    """By head, query block and key block."""
    readout: dict[str, Array] = field(default_factory=dict)

    def blocks(self, layer: int) -> list[str]:
        """List the blocks of the stream after a layer."""
        if layer == 0:
            return ["token"]
        before = self.blocks(layer - 1)
        heads = range(1, self.heads[layer - 1] + 1)
        return before + [f"{layer}.{h}/{block}" for h in heads for block in (*before, "offset")]

    def size(self, block: str) -> int:
        """Return the width of a block: one for each symbol, or for each offset told apart."""
        return self.states + 1 if block.endswith("token") else self.reach + 1

    def block(self, head: str, query: str, key: str) -> Array:
        """Return a matrix of scores to be written into."""
        zeros = np.zeros((self.size(query), self.size(key)))
        return self.scores.setdefault((head, query, key), zeros)

    def read(self, block: str) -> Array:
        """Return a block of the output matrix to be written into."""
        return self.readout.setdefault(block, np.zeros((self.states, self.size(block))))

    def run(self, tokens: Array) -> Run:
        """Run every layer on sequences, one per row."""
        time = tokens.shape[1] + 1
        symbols = np.pad(tokens, ((0, 0), (1, 0)), constant_values=self.states)
        gap = np.arange(time)[:, None] - np.arange(time)
        bucket = np.clip(gap, 0, self.reach)
        one_hot = np.eye(self.reach + 1)[bucket] * (gap >= 0)[:, :, None]
        stream = {"token": np.eye(self.states + 1)[symbols]}
        attention = {}
        for layer, heads in enumerate(self.heads, start=1):
            written = {}
            for head in (f"{layer}.{h}" for h in range(1, heads + 1)):
                weights = softmax(np.where(gap >= 0, self.score(head, stream, bucket), -np.inf))
                attention[head] = weights
                for block in self.blocks(layer - 1):
                    written[f"{head}/{block}"] = weights @ stream[block]
                written[f"{head}/offset"] = np.einsum("bij,ijr->bir", weights, one_hot)
            stream |= written
        output = sum(stream[block] @ W.T for block, W in self.readout.items())
        return Run(np.asarray(output), attention, stream)

    def score(self, head: str, stream: dict[str, Array], bucket: Array) -> Array:
        """Return the scores of one head, keys after the query included."""
        batch, time, _ = stream["token"].shape
        total = np.zeros((batch, time, time))
        for (of, query, key), matrix in self.scores.items():
            if of != head:
                continue
            left = stream[query] @ matrix
            if key == "offset":
                total += np.take_along_axis(left, np.broadcast_to(bucket, total.shape), axis=2)
            else:
                total += left @ stream[key].swapaxes(1, 2)
        return total


@dataclass(frozen=True, eq=False)
class Run:
    """Outputs, attention and blocks; row i is position i, row 0 the start token's."""

    output: Array
    attention: dict[str, Array]
    stream: dict[str, Array]

    def lag_weights(self, lags: Lags, row: int, head: str = "3.1") -> Array:
        """Return the attention of a row to the candidate of each lag."""
        return np.stack([self.attention[head][:, row, row - k + 1] for k in lags], axis=-1)


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis."""
    grown: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=-1, keepdims=True))


def log_of(P: Array) -> Array:
    """Return log P, with `LOG_ZERO` for the logarithm of 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(P), LOG_ZERO))


def compare_with_parents(
    model: RelativeKind, head: str, P: Array, lags: Lags, gamma: float, lam: float
) -> None:
    """Write the first layer: p-tilde by lag, or the start token where there is no transition."""
    S, last = len(P), max(lags)
    tokens = model.block(head, "token", "token")
    tokens[:S, :S] = gamma * log_of(P).T
    tokens[:, S] = 4 * lam
    offsets = model.block(head, "token", "offset")
    offsets[:] = -2 * lam
    offsets[:, list(lags)] = 0
    offsets[:, last + 1 :] = -8 * lam


def copy_candidates(
    model: RelativeKind, P: Array, lags: Lags, prior: Array | None, lam: float
) -> None:
    """Write what the third layer does but for the evidence, and the output."""
    S, last = len(P), max(lags)
    model.block("3.1", "token", "token")[:, S] = 4 * lam
    offsets = model.block("3.1", "token", "offset")
    offsets[:] = -2 * lam
    offsets[:, last:] = -8 * lam
    for n, k in enumerate(lags):
        offsets[:, k - 1] = 0 if prior is None else np.log(prior[n])
    model.read("3.1/token")[:, :S] = P.T
    model.read("3.1/token")[:, S] = stationary(P)


def selective(
    P: Array, lags: Lags, *, beta: float, lam: float, prior: Array | None = None
) -> RelativeKind:
    """Write the circuit of Theorem R1, heads [1,1,1]."""
    S = len(P)
    model = RelativeKind(S, max(lags) + 1, (1, 1, 1))
    compare_with_parents(model, "1.1", P, lags, 1.0, lam)
    model.block("2.1", "token", "1.1/token")[:, S] = -2 * lam
    model.block("2.1", "token", "token")[:, S] = lam
    copy_candidates(model, P, lags, prior, lam)
    for k in lags:
        model.block("3.1", "2.1/1.1/offset", "offset")[k, k - 1] = beta
    return model


def bayes(
    P: Array, lags: Lags, prior: Array, *, gamma: float, weight: float, symmetric: bool, lam: float
) -> RelativeKind:
    """Write the circuit of Theorem R2: a start token of this weight, one or two first-layer heads."""
    S, K, signs = len(P), len(lags), (1, -1) if symmetric else (1,)
    model = RelativeKind(S, max(lags) + 1, (len(signs), 1, 1))
    copy_candidates(model, P, lags, prior, lam)
    model.block("2.1", "token", "1.1/token")[:, S] = -2 * lam
    model.block("2.1", "token", "token")[:, S] = 2 * lam + np.log(weight)
    for h, sign in enumerate(signs, start=1):
        compare_with_parents(model, f"1.{h}", P, lags, sign * gamma, lam)
        for k in lags:
            read = model.block("3.1", f"2.1/1.{h}/offset", "offset")
            read[k, k - 1] = sign * weight * K / (gamma * len(signs))
    return model


Weigh = Callable[[Array], Array]
"""From the probabilities of the transitions so far (transition, lag) to a weight for each lag."""


def mean_of_ratios(beta: float, prior: Array | None = None) -> Weigh:
    """Weigh lags by their prior times exp(beta times the mean of p-tilde), 0 for no transition."""

    def weigh(p: Array) -> Array:
        mean = (p / p.sum(axis=1, keepdims=True)).mean(axis=0) if len(p) else np.zeros(p.shape[1])
        return softmax(beta * mean + (0.0 if prior is None else np.log(prior)))

    return weigh


def posterior(prior: Array) -> Weigh:
    """Weigh lags by their posterior probability."""
    return lambda p: softmax(np.log(prior) + log_of(p).sum(axis=0))


def by_definition(tokens: Array, P: Array, lags: Lags, weigh: Weigh) -> Array:
    """Weigh the lags after every position from max(lags) on, by loops over one sequence."""
    last, rows, weights = max(lags), [], []
    for i in range(last, len(tokens) + 1):
        if i > last:
            rows.append([P[tokens[i - 1 - k], tokens[i - 1]] for k in lags])
        weights.append(weigh(np.array(rows).reshape(-1, len(lags))))
    return np.array(weights)


def errors(
    model: RelativeKind, tokens: Array, P: Array, lags: Lags, weigh: Weigh
) -> tuple[float, float]:
    """Return the largest error of a weight of a lag, and of an output in any row."""
    run, last, pi = model.run(tokens), max(lags), stationary(P)
    of_weights, of_outputs = 0.0, 0.0
    for b, sequence in enumerate(tokens):
        wanted = by_definition(sequence, P, lags, weigh)
        expected = np.tile(pi, (len(sequence) + 1, 1))
        for i in range(last, len(sequence) + 1):
            found = run.lag_weights(lags, i)[b]
            of_weights = max(of_weights, float(abs(found - wanted[i - last]).max()))
            candidates = [P[sequence[i - k]] for k in lags]
            expected[i] = wanted[i - last] @ np.array(candidates)
        of_outputs = max(of_outputs, float(abs(run.output[b] - expected).max()))
    return of_weights, of_outputs


def stationary(P: Array) -> Array:
    """Return the stationary distribution of an irreducible matrix."""
    S = len(P)
    equations = np.vstack([P.T - np.eye(S), np.ones(S)])
    return np.asarray(np.linalg.lstsq(equations, np.r_[np.zeros(S), 1.0], rcond=None)[0])


def sequences(
    rng: np.random.Generator, P: Array, lags: Lags, length: int, count: int, random: int = 0
) -> Array:
    """Draw sequences whose lags take turns, and some of uniform tokens."""
    S, pi = len(P), stationary(P)
    drawn = rng.integers(S, size=(count + random, length))
    for b in range(count):
        lag = lags[b % len(lags)]
        for i in range(length):
            chances = pi if i < max(lags) else P[drawn[b, i - lag]]
            drawn[b, i] = rng.choice(
                S, p=np.clip(chances, 0, None) / np.clip(chances, 0, None).sum()
            )
    return drawn


def sets_within(largest: int) -> list[Lags]:
    """List all sets of lags within 1 .. largest."""
    every: Sequence[int] = range(1, 2**largest)
    return [tuple(k + 1 for k in range(largest) if n >> k & 1) for n in every]
