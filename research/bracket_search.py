"""Searches, by least squares, for exact circuits with ever fewer second-layer heads, for all small sets of lags.

    python research/bracket_search.py brackets.json --reach 8 --both-up-to 4

The file is a table of brackets (`sih.beyond.shared_heads.brackets`, which keeps one; `sih heads` shows what it holds).
If the file exists, the search continues it: no set is searched twice. The kept table took two core-hours. A search that
fails proves nothing.
"""

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from sih.base.errors import FieldError
from sih.base.files import check_place, write_json
from sih.beyond.shared_heads.brackets import EXACT, LENGTH, Bracket, normal_form, read_brackets
from sih.beyond.shared_heads.prescribed import rank_bound
from sih.heads.least import least_heads
from sih.heads.mixing import progression
from sih.heads.read_fit import ReadProblem, fitted
from sih.heads.two_sided_fit import starts
from sih.models.fast.threads import limited_threads

TRIED = (0, 1, 5, 8)
"""Which of the starts of `two_sided` are tried: closed-form waves, waves at random phases twice, noise."""
STAGES = ((30, 1e-11), (30, 1e-14), (20, 1e-16))
"""Steps, and the pull on weights and reads, with which the best of them goes on."""
FARTHEST = 16
"""The largest lag of a table: there are 2^(lag - 1) sets up to it."""


def extend(path: Path, reach: int, query: bool = True, both_up_to: int = 0) -> Iterator[Bracket]:
    """Go on with the table for every set within {1..reach}, few lags first, and write it after each; yield what is new.

    What theory leaves open is searched for if `query`, and on both sides for sets of no more than `both_up_to` lags.
    """
    if not 2 <= reach <= FARTHEST:
        raise FieldError(
            "reach", f"reach is the largest lag of the table, 2 to {FARTHEST}; got {reach}"
        )
    known = {bracket.lags: bracket for bracket in read_brackets(path)} if path.exists() else {}
    sets = [
        (1, *rest)
        for size in range(1, reach)
        for rest in itertools.combinations(range(2, reach + 1), size)
    ]
    for lags in dict.fromkeys(map(normal_form, sets)):
        old = known.get(lags)
        found = _proved(lags) if old is None else old
        if query and not found.query:
            found = replace(
                found, query=_downwards(lags, found.query_heads - 1, found.lower, key=False)
            )
        if len(lags) <= both_up_to and not found.both:
            found = replace(found, both=_downwards(lags, found.query_heads - 1, 1, key=True))
        if found != old:
            known[lags] = found
            rows = [asdict(known[one]) for one in sorted(known, key=lambda one: (len(one), one))]
            write_json(
                path,
                {"length": LENGTH, "starts": len(TRIED), "exact": EXACT, "brackets": rows},
                indent=1,
            )
            yield found


def _proved(lags: tuple[int, ...]) -> Bracket:
    unmixed, closed = least_heads(lags).heads, progression(lags)[1] - 1
    lower = max(rank_bound(lags, min(unmixed, closed)).heads, 2 if len(lags) > 2 else 1)
    return Bracket(lags, unmixed, closed, lower, {}, {})


def _downwards(lags: tuple[int, ...], heads: int, lowest: int, key: bool) -> dict[int, float]:
    found: dict[int, float] = {}
    while heads >= lowest and all(off < EXACT for off in found.values()):
        found[heads] = best_residual(lags, heads, key)
        heads -= 1
    return found


@limited_threads(1)
def best_residual(lags: tuple[int, ...], heads: int, key: bool) -> float:
    """Fit from every start and go on with the best; return its largest residual at any offset."""
    problem = ReadProblem(lags, heads, torch.ones(LENGTH - lags[-1], dtype=torch.float64))
    if not key:
        problem.W[:, -len(lags) :] = 0.0
    weights = starts(lags, heads, problem.offsets)[list(TRIED)]
    u, g, cost = fitted(problem, weights, None, 25, 1e-8)
    best = int(torch.nan_to_num(cost, nan=math.inf).argmin())
    u, g = u[best : best + 1], g[best : best + 1]
    for iterations, ridge in STAGES:
        u, g, _ = fitted(problem, u, g, iterations, ridge)
        off = problem.residual(problem.widened(u), g)[0].square().sum(dim=-1).sqrt().max().item()
        if off > 0.01:
            break
    return off


def main(words: Sequence[str] | None = None) -> int:
    """Go on with the table. The exit code is 0, 2 if a flag or the file is wrong, 130 if it was stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", type=Path, help="the table, a .json file")
    parser.add_argument("--reach", type=int, default=8, help="the largest lag of the table")
    parser.add_argument(
        "--both-up-to",
        type=int,
        default=4,
        help="also search circuits that read both sides, for sets of at most this many lags",
    )
    given = parser.parse_args(words)
    try:
        check_place(given.table)
        for bracket in extend(given.table, given.reach, both_up_to=given.both_up_to):
            print(bracket, flush=True)
    except ValueError as error:
        print(f"bracket_search: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            f"bracket_search: what is done is in {given.table}; the same command goes on",
            file=sys.stderr,
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
