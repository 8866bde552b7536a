"""The two transformers as the paper writes them, in plain Python loops. They share no code with `sih`.

A sequence is a list of ints, a matrix a list of rows, positions are 0-based.
"""

from __future__ import annotations

import math

Row = list[float]
Matrix = list[Row]


def attention(h: Matrix, A: Matrix, temperature: float) -> Matrix:
    """Row i: softmax over j <= i of h_i^T A h_j / temperature, and 0 for later j."""
    result = []
    for i in range(len(h)):
        scores = []
        for j in range(i + 1):
            total = 0.0
            for r in range(len(A)):
                for c in range(len(A[0])):
                    total += h[i][r] * A[r][c] * h[j][c]
            scores.append(total / temperature)
        top = max(scores)
        weights = [math.exp(score - top) for score in scores]
        result.append([w / sum(weights) for w in weights] + [0.0] * (len(h) - 1 - i))
    return result


def product(X: Matrix, Y: Matrix) -> Matrix:
    return [
        [sum(X[i][k] * Y[k][j] for k in range(len(Y))) for j in range(len(Y[0]))]
        for i in range(len(X))
    ]


def transposed(X: Matrix) -> Matrix:
    return [list(column) for column in zip(*X, strict=True)]


def disentangled(
    tokens: list[int],
    num_states: int,
    length: int,
    A: list[list[Matrix]],
    W_O: Matrix,
    temperature: float,
) -> tuple[Matrix, list[list[Matrix]], Matrix]:
    """Output, attention[layer][head], and the final stream."""
    h = []
    for i, token in enumerate(tokens):
        row = [0.0] * (num_states + length)
        row[token] = 1.0
        row[num_states + i] = 1.0
        h.append(row)
    seen = []
    for heads in A:
        seen.append([attention(h, head, temperature) for head in heads])
        outputs = [product(matrix, h) for matrix in seen[-1]]
        h = [sum((output[i] for output in outputs), start=h[i]) for i in range(len(h))]
    return product(h, transposed(W_O)), seen, h


def standard(
    tokens: list[int],
    E: Matrix,
    F: Matrix,
    layers: list[list[tuple[Matrix, Matrix, Matrix]]],
    mlps: list[tuple[Matrix, Matrix]] | None,
    W_O: Matrix,
    temperature: float,
) -> Matrix:
    """The output; `layers` are (Q, K, V) for each head, `mlps` (W_1, W_2) for each layer, with ReLU."""
    h = [[e + f for e, f in zip(E[token], F[i], strict=True)] for i, token in enumerate(tokens)]
    for number, heads in enumerate(layers):
        total = [list(row) for row in h]
        for Q, K, V in heads:
            output = product(product(attention(h, product(Q, transposed(K)), temperature), h), V)
            total = [
                [x + y for x, y in zip(a, b, strict=True)]
                for a, b in zip(total, output, strict=True)
            ]
        if mlps is not None:
            W_1, W_2 = mlps[number]
            inner = [[max(0.0, x) for x in row] for row in product(total, W_1)]
            output = product(inner, transposed(W_2))
            total = [
                [x + y for x, y in zip(a, b, strict=True)]
                for a, b in zip(total, output, strict=True)
            ]
        h = total
    return product(h, transposed(W_O))
