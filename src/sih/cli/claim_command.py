"""`sih claim`: compute Claim 1 exactly, for one matrix or many. `sih claim search`: look for a counterexample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.table import Table

from sih.cli.progress import track
from sih.files import write_json
from sih.markov import load_transition_matrix
from sih.models.kernels.threads import limited_threads
from sih.theory.claim import ClaimTable, claim_table
from sih.theory.monte_carlo import PAPER_LAGS, MonteCarlo, estimates, load_estimates, random_matrices, save_estimates
from sih.theory.rational import rational_expectations
from sih.theory.search import STATE, SearchConfig, SearchState, rounds


@limited_threads(1)  # the arrays are small: more threads mostly wait for each other
def claim(
    out: Path = Path("out/claim"),
    states: int = 10,
    matrices: int = 1000,
    lags: tuple[int, ...] = PAPER_LAGS,
    matrix: Path | None = None,
    concentration: float = 1.0,
    seed: int = 0,
    tolerance: float = 1e-10,
    monte_carlo: Literal["no", "trimmed", "printed"] = "no",
    sequences: int = 1000,
    length: int = 1000,
    rational: bool = False,
    figures: bool = True,
) -> int:
    """Compute the expectations of Claim 1 exactly: is the true lag's normalised probability the largest on average?

    Writes claim.json and three figures: the gap over matrices, the expectation of every lag, and cumulative averages
    along a sequence. Exit code 1 if some lag's expectation exceeds the true lag's.

    Example: sih claim --states 10 --matrices 1000 --lags 1 2 7 9 10 11 13 15 16 22 26 28 --seed 0 --out out/claim

    Args:
        out: the folder to write to.
        states: number of states of the random matrices.
        matrices: how many random matrices.
        lags: the lag set, increasing.
        matrix: one transition matrix, .npy or .csv, instead of random ones (a search leaves a worst.csv).
        concentration: of the Dirichlet rows; small is nearly deterministic.
        seed: of the matrices and the sequences.
        tolerance: the error allowed in each expectation.
        monte_carlo: also estimate by sampling: whole sequences as the paper prints it, or only the variables that
            matter. Resumable.
        sequences: sequences a matrix and lag of the Monte Carlo.
        length: tokens in a sequence of the printed form.
        rational: also enumerate one small matrix in exact rational arithmetic.
        figures: whether to draw.
    """
    if len(lags) < 2:
        raise ValueError(f"a comparison needs at least 2 lags, e.g. 1 2 3; got {lags}")
    if rational and matrix is None:
        raise ValueError("--rational enumerates the matrix of a file; give it with --matrix")
    if monte_carlo != "no" and matrix is not None:
        raise ValueError("--monte-carlo samples an ensemble of random matrices; leave out --matrix")
    console = _console()
    if matrix is None:
        P = random_matrices(states, matrices, seed=seed, concentration=concentration)
    else:
        P = load_transition_matrix(matrix)[None]
    table = claim_table(P, lags, tolerance=tolerance)
    console.print(_margin_table(table))
    record = _record(table, P) | {"seed": seed, "matrix": str(matrix) if matrix else None}
    if rational:
        record["rational_margins"] = _rational_margins(P[0], table, console)
    if monte_carlo != "no":
        check = MonteCarlo(states, matrices, table.lags, sequences, length, concentration, seed, monte_carlo)
        record["monte_carlo"] = _compare(check, table, out / f"monte-carlo-{monte_carlo}", console)
    write_json(out / "claim.json", record, indent=1)
    console.print(f"wrote {out / 'claim.json'}")
    if figures:
        for path in _draw(table, P, out, seed):
            console.print(f"wrote {path}")
    worst = record["smallest_margin"]
    verdict = "holds" if table.holds else "is VIOLATED"
    console.print(f"Claim 1 {verdict} here: smallest gap {worst['gap']:.3e}, each expectation to {table.error:.1e}")
    return 0 if table.holds else 1


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
    console = _console()
    config = SearchConfig(states, sizes, max_lag, lags, starts, steps, seed, statement)
    state = SearchState.load(out) if (out / STATE).exists() else SearchState(config)
    if state.config != config:
        raise ValueError(f"{out} holds a search with other settings ({state.config}); give another folder")
    wanted = -(-descents // starts)
    try:
        if state.rounds < wanted:
            for num_states, found in track(rounds(config, state.rounds), wanted, "rounds", state.rounds):
                state = state.after(num_states, found)
                state.save(out)
                if state.rounds >= wanted:
                    break
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the same command goes on from {out}") from None
    console.print(_search_table(state))
    if state.least is not None:
        told = " ".join(map(str, state.least.lags))
        console.print(f"the worst: sih claim --matrix {out / 'worst.csv'} --lags {told}")
    if state.violations:
        console.print(f"the statement is violated by {state.violations} descents")
    return 1 if state.violations else 0


def _console() -> Console:
    """Make a console as wide as the terminal, or wide enough for the tables where there is none."""
    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 120)


def _margin_table(table: ClaimTable) -> Table:
    shown = Table(title=f"Claim 1 over {len(table.margins)} matrices, each expectation to {table.error:.0e}")
    for column in ("true lag", "mean E_k", "mean of the largest rival", "mean gap", "smallest gap"):
        shown.add_column(column, justify="right")
    own = table.expectations.diagonal(dim1=-2, dim2=-1)
    for j, lag in enumerate(table.lags):
        margins = table.margins[:, j]
        cells = (own[:, j].mean(), (own[:, j] - margins).mean(), margins.mean(), margins.min())
        shown.add_row(str(lag), *(f"{x.item():.6f}" for x in cells))
    return shown


def _record(table: ClaimTable, P: torch.Tensor) -> dict[str, Any]:
    """Say what claim.json holds of the exact values, all of them if there is one matrix."""
    margins = table.margins
    where, lag = divmod(int(margins.argmin()), len(table.lags))
    rival = int(table.gaps[where, lag].argmin())
    smallest = {"gap": margins.min().item(), "matrix": where, "true_lag": table.lags[lag], "rival": table.lags[rival]}
    record: dict[str, Any] = {
        "lags": table.lags,
        "states": P.shape[-1],
        "matrices": len(P),
        "error": table.error,
        "holds": table.holds,
        "smallest_margin": smallest,
        "mean_expectations": table.expectations.mean(dim=0).tolist(),
        "margins": margins.tolist(),
    }
    return record | ({"P": P[0].tolist(), "expectations": table.expectations[0].tolist()} if len(P) == 1 else {})


def _rational_margins(P: torch.Tensor, table: ClaimTable, console: Console) -> list[str]:
    """Compute the margin of every true lag as a fraction, and say how far the floating-point one is from it."""
    found = []
    for j, k in enumerate(table.lags):
        exact = rational_expectations(P, table.lags, k)
        margin = exact[j] - max(e for i, e in enumerate(exact) if i != j)
        off = abs(float(margin) - table.margins[0, j].item())
        console.print(f"true lag {k}: gap {float(margin):.15g} exactly; floating point is {off:.1e} off")
        found.append(f"{margin.numerator}/{margin.denominator}" if margin.denominator < 10**40 else repr(float(margin)))
    return found


def _compare(check: MonteCarlo, table: ClaimTable, folder: Path, console: Console) -> dict[str, Any]:
    """Run (or go on with) the Monte Carlo and set it against the exact values, in standard errors."""
    done = load_estimates(folder, check)
    try:
        for estimate in track(estimates(check, len(done)), check.matrices, f"{check.form} Monte Carlo", len(done)):
            done.append(estimate)
            if len(done) % 20 == 0:
                save_estimates(folder, check, done)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{len(done)} matrices done; the same command goes on from {folder}") from None
    finally:
        save_estimates(folder, check, done)
    mean = torch.stack([e.mean for e in done])
    error = torch.stack([e.error for e in done])
    z = (mean - table.expectations)[error > 0] / error[error > 0]
    estimated = ClaimTable(table.lags, mean, 0.0).margins
    result = {
        "form": check.form,
        "matrices": len(done),
        "sequences": check.sequences,
        "length": check.length,
        "mean_standard_error": error.mean().item(),
        "rms_deviation_in_standard_errors": z.square().mean().sqrt().item(),
        "share_within_two_standard_errors": (z.abs() < 2).double().mean().item(),
        "largest_deviation_in_standard_errors": z.abs().max().item(),
        "comparisons": z.numel(),
        "smallest_margin": estimated.min().item(),
    }
    for name, value in result.items():
        console.print(f"  {name.replace('_', ' ')}: {value:.4g}" if isinstance(value, float) else f"  {name}: {value}")
    return result


def _draw(table: ClaimTable, P: torch.Tensor, out: Path, seed: int) -> list[Path]:
    from sih.experiments import claim_cumulative, claim_expectations, claim_histogram
    from sih.figures import claim_panels, style

    size = P.shape[-1]
    paths = claim_cumulative.of_matrix(P[0], table.lags, 1000, seed)
    drawn = {
        "claim_histogram": claim_panels.draw_claim_histogram(claim_histogram.of_table(table, size)),
        "claim_expectations": claim_panels.draw_claim_expectations(claim_expectations.of_table(table, size)),
        "claim_cumulative": claim_panels.draw_claim_cumulative(paths),
    }
    return [path for name, figure in drawn.items() for path in style.save(figure, out / name)]


def _search_table(state: SearchState) -> Table:
    shown = Table(title=f"Smallest normalised gap in {sum(state.descents.values())} descents")
    for column in ("states", "K", "descents", "smallest", "1/K", "below 1/K", "gap there", "lags", "true", "rival"):
        shown.add_column(column, justify="right", no_wrap=True)
    for cell, worst in state.worst.items():
        numbers = (f"{worst.ratio:.6f}", f"{1 / worst.num_lags:.6f}", str(state.below[cell]), f"{worst.gap:.2e}")
        where = (" ".join(map(str, worst.lags)), str(worst.true_lag), str(worst.rival))
        shown.add_row(str(worst.num_states), str(worst.num_lags), str(state.descents[cell]), *numbers, *where)
    return shown
