"""Weights from tied tables, entry by entry."""

from __future__ import annotations

from torch import Tensor


def at_position(table: list[float], i: int, max_period: int) -> float:
    """sum_{n=1}^N g_n(i mod n), the tables g_1, g_2, ... one after the other."""
    total, start = 0.0, 0
    for n in range(1, max_period + 1):
        total += table[start + i % n]
        start += n
    return total


def at_distance(table: list[float], distance: int, max_period: int) -> float:
    """f(clipped distance) + sum_{n=2}^N g_n(distance mod n), the tables f, g_2, g_3, ... one after the other."""
    clipped = max(-max_period, min(max_period, distance))
    total, start = table[clipped + max_period], 2 * max_period + 1
    for n in range(2, max_period + 1):
        total += table[start + distance % n]
        start += n
    return total


def weight(
    tables: dict[str, Tensor],
    layer: int,
    head: int,
    query: tuple[int, str, int],
    key: tuple[int, str, int],
    period: int,
) -> float:
    """An entry of A; query and key are path, kind and the place in that block."""
    (p, query_kind, i), (q, key_kind, j) = query, key
    table = tables[f"{layer}/{query_kind}/{key_kind}"]
    if query_kind == key_kind == "token":
        return table[head, p, i, q, j].item()
    if query_kind == "token":
        return at_position(table[head, p, i, q].tolist(), j, period)
    if key_kind == "token":
        return at_position(table[head, p, :, q, j].tolist(), i, period)
    return at_distance(table[head, p, q].tolist(), i - j, period)
