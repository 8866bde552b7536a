"""`sih claim search`: look for a counterexample to Claim 1, where it is open or anywhere."""

from pathlib import Path
from typing import Literal

from rich.table import Table

from sih.claim.search import STATE, SearchConfig, SearchState, rounds
from sih.cli.printing import plain_console, table_of, track
from sih.models.fast.threads import limited_threads


@limited_threads(1)
def search(
    out: Path,
    states: tuple[int, ...] = (3, 4, 5, 6),
    sizes: tuple[int, ...] = (3, 4, 5, 6, 7, 8),
    max_lag: int = 12,
    lags: tuple[int, ...] | None = None,
    descents: int = 1536,
    starts: int = 64,
    steps: int = 120,
    seed: int = 0,
    statement: Literal["claim", "wrong-lag", "non-stationary"] = "claim",
    open_only: bool = False,
    family: Literal["any", "reversible", "symmetric"] = "any",
    begin: tuple[Literal["random", "rotation", "tree", "blocks"], ...] = ("random",),
) -> int:
    """Descend on the normalised gap of Claim 1 from many random matrices; keep the worst case found.

    The folder holds search.json (everything found) and worst.csv (the worst matrix, which `sih claim --matrix` reads).
    The same command resumes a stopped search; more --descents makes a finished search longer. Exit code 1 if
    the statement was violated.

    Example: sih claim search --out out/search --states 3 4 --sizes 3 4 --descents 512

    Args:
        out: The folder of the search.
        states: Numbers of states to try.
        sizes: Numbers of lags to try.
        max_lag: The largest lag a lag set may have.
        lags: The only lag set to try.
        descents: Number of descents in all, rounded up to whole rounds of --starts.
        starts: Descents made at once, on one lag set and true lag.
        steps: Steps of a descent.
        seed: Random seed for everything drawn.
        statement: The statement to violate: Claim 1, or a false one, to see the search succeed.
        open_only: Leave out the pairs of true lag and rival that are theorems (see `sih claim`).
        family: Search among all matrices, reversible or symmetric ones.
        begin: Where descents begin, in turn: random matrices, slow rotations, walks on trees, blocks in a cycle.
    """
    console = plain_console(120)
    config = SearchConfig(
        states, sizes, max_lag, lags, starts, steps, seed, statement, open_only, family, begin
    )
    state = SearchState.load(out) if (out / STATE).exists() else SearchState(config)
    if state.config != config:
        raise ValueError(
            f"{out} holds a search with other settings ({state.config}); give another folder"
        )
    wanted = -(-descents // starts)
    try:
        if state.rounds < wanted:
            for num_states, found in track(
                rounds(config, state.rounds), wanted, "rounds", state.rounds
            ):
                state = state.after(num_states, found)
                state.save(out)
                if state.rounds >= wanted:
                    break
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command resumes from {out}") from None
    console.print(_search_table(state))
    if state.least is not None:
        told = " ".join(map(str, state.least.lags))
        console.print(f"the worst: sih claim --matrix {out / 'worst.csv'} --lags {told}")
    if state.violations:
        console.print(f"the statement is violated by {state.violations} descents")
    return 1 if state.violations else 0


def _search_table(state: SearchState) -> Table:
    rows = [
        [
            "states",
            "K",
            "descents",
            "smallest",
            "1/K",
            "below 1/K",
            "gap there",
            "lags",
            "true",
            "rival",
        ]
    ]
    for cell, worst in state.worst.items():
        numbers = (
            f"{worst.ratio:.6f}",
            f"{1 / worst.num_lags:.6f}",
            str(state.below[cell]),
            f"{worst.gap:.2e}",
        )
        where = (" ".join(map(str, worst.lags)), str(worst.true_lag), str(worst.rival))
        rows.append(
            [
                str(worst.num_states),
                str(worst.num_lags),
                str(state.descents[cell]),
                *numbers,
                *where,
            ]
        )
    title = f"Smallest normalised gap in {sum(state.descents.values())} descents"
    return table_of(rows, title, left=0, no_wrap=True)
