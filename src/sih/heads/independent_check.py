"""Checks of `least_heads` from the definitions, without code of the search.

They use plain sets and dictionaries and their own algorithms, and nothing of
`colouring`.
"""

from collections.abc import Sequence

from sih.heads.least import LowerBoundProof
from sih.task import check_lags


def verify_colouring(lags: Sequence[int], colours: Sequence[int]) -> bool:
    """Return whether no head mixes two lags. -1 is an unused offset.

    If o + a = o' + b for lags a != b, then o and o' must not have the same head.
    """
    period, moves = len(colours), [a - b for a in lags for b in lags if a != b]
    return period > 0 and all(
        k < 0 or k != colours[(o + d) % period] for o, k in enumerate(colours) for d in moves
    )


def verify_lower_bound(lags: Sequence[int], proof: LowerBoundProof) -> bool:
    """Return whether the proof's points need `proof.heads` colours.

    The distances are those of these lags.
    """
    lags = check_lags(lags)
    forbidden = {abs(a - b) for a in lags for b in lags if a != b}
    return _needs(
        {p: {q for q in proof.points if abs(p - q) in forbidden} for p in proof.points}, proof
    )


def _needs(graph: dict[int, set[int]], proof: LowerBoundProof) -> bool:
    """Return whether the proof's points need `proof.heads` colours in the graph."""
    points = set(proof.points)
    if len(points) != len(proof.points) or not points:
        return False
    if proof.kind == "clique":
        return len(points) >= proof.heads and all(graph[p] == points - {p} for p in points)
    if proof.kind == "count":
        too_few = proof.largest is not None and (proof.heads - 1) * proof.largest < len(points)
        return too_few and not _holds_independent(graph, points, (proof.largest or 0) + 1)
    return not _colourable(graph, proof.heads - 1)


def _holds_independent(graph: dict[int, set[int]], points: set[int], size: int) -> bool:
    """Return whether `size` of the points are pairwise not joined.

    Cliques that cover the points bound the number.
    """
    if size <= 0:
        return True
    cliques: list[set[int]] = []
    for p in sorted(points):
        home = next((clique for clique in cliques if clique <= graph[p]), None)
        if home is None:
            cliques.append({p})
        else:
            home.add(p)
    if len(cliques) < size:
        return False
    # A largest set contains p or a neighbour of p: otherwise p could join it. The point with the
    # fewest neighbours thus takes the fewest tries.
    p = min(points, key=lambda p: (len(graph[p] & points), p))
    tried: set[int] = set()
    for q in [p, *sorted(graph[p] & points)]:
        if _holds_independent(graph, points - graph[q] - {q} - tried, size - 1):
            return True
        tried.add(q)
    return False


def _colourable(graph: dict[int, set[int]], colours: int) -> bool:
    """Return whether this many colours suffice.

    The vertex with most differently coloured neighbours tries each colour in turn.
    """
    colouring: dict[int, int] = {}
    seen: dict[int, dict[int, int]] = {
        p: {} for p in graph
    }  # seen[p][k]: how many neighbours of p have colour k

    def extend(used: int) -> bool:
        if len(colouring) == len(graph):
            return True
        p = max(
            (q for q in graph if q not in colouring),
            key=lambda q: (len(seen[q]), len(graph[q]), -q),
        )
        for k in range(
            min(used + 1, colours)
        ):  # unused colours are alike: only the first of them is tried
            if k in seen[p]:
                continue
            colouring[p] = k
            for q in graph[p]:
                seen[q][k] = seen[q].get(k, 0) + 1
            if extend(max(used, k + 1)):
                return True
            del colouring[p]
            for q in graph[p]:
                seen[q][k] -= 1
                if not seen[q][k]:
                    del seen[q][k]
        return False

    return extend(0)
