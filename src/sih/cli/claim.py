"""`sih claim search`: look for a counterexample to Claim 1."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal


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
) -> int:
    """Descend on the normalised gap of Claim 1 from many random matrices; keep the worst case found.

    The folder holds search.json (everything found) and worst.csv (the worst matrix, which `sih claim --matrix` reads).
    The same command goes on where the last one stopped; more --descents makes a finished search longer. Exit code 1 if
    the statement was violated.

    Example: sih claim search --out out/search --states 3 4 --sizes 3 4 --descents 512

    Args:
        out: folder of the search.
        states: numbers of states to try.
        sizes: numbers of lags to try.
        max_lag: the largest lag a lag set may have.
        lags: try this lag set only.
        descents: stop once so many descents have been made in all.
        starts: descents made side by side, on one lag set and true lag.
        steps: steps of a descent.
        seed: of everything drawn.
        statement: what is to be violated: Claim 1, or a false statement to see the search succeed.
    """
    import torch

    from sih.theory.search import STATE, SearchConfig, SearchState, rounds

    torch.set_num_threads(1)  # the arrays are small: more threads only wait for each other
    config = SearchConfig(states, sizes, max_lag, lags, starts, steps, seed, statement)
    state = SearchState.load(out) if (out / STATE).exists() else SearchState(config)
    if state.config != config:
        raise ValueError(f"{out} holds a search with other settings ({state.config}); give another folder")
    began, before = time.monotonic(), sum(state.descents.values())
    try:
        if before < descents:
            for num_states, found in rounds(config, state.rounds):
                state.update(num_states, found)
                state.save(out)
                done = sum(state.descents.values())
                rate = (done - before) / (time.monotonic() - began)
                print(
                    f"{done} of {descents} descents, {rate:.0f} a second: {num_states} states, "
                    f"lags {found.statement.lags}, true lag {found.statement.true_lag}: "
                    f"normalised gap {found.ratio[0]:.6f}",
                    flush=True,
                )
                if done >= descents:
                    break
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command goes on from {out}") from None
    return 1 if state.violations else 0
