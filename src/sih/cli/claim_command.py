"""`sih claim`: compute Claim 1 exactly, for one matrix or many, and report its proved
cases.
"""

from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.table import Table

from sih.base.files import write_json
from sih.claim.coverage import OPEN, claim_status
from sih.claim.exact import ClaimTable, claim_table
from sih.claim.monte_carlo import (
    PAPER_LAGS,
    MonteCarlo,
    estimates,
    load_estimates,
    random_matrices,
    save_estimates,
)
from sih.claim.rational import rational_expectations
from sih.cli.matrix_flag import MatrixLaw, check_drawn
from sih.cli.printing import plain_console, table_of, track
from sih.models.fast.threads import limited_threads
from sih.task.matrices import load_transition_matrix


@limited_threads(1)  # the arrays are small: more threads would mostly wait for each other
def claim(
    out: Path = Path("out/claim"),
    states: int = 10,
    matrices: int = 1000,
    lags: tuple[int, ...] = PAPER_LAGS,
    matrix: Path | None = None,
    matrix_law: MatrixLaw = "dirichlet",
    concentration: float = 1.0,
    seed: int = 0,
    tolerance: float = 1e-10,
    monte_carlo: Literal["no", "trimmed", "printed"] = "no",
    sequences: int = 1000,
    length: int = 1000,
    rational: bool = False,
    figures: bool = True,
) -> int:
    """Compute the expectations of Claim 1 exactly: is the true lag's normalised
    probability the largest on average?

    For each true lag and rival it reports whether the claim is a theorem for all
    matrices of that size, and by which lemma (docs/concepts/claim-1.md), or open. It
    writes claim.json and three figures: the gap over matrices, the expectation of every
    lag, and cumulative averages along a sequence. Exit code 1 if some lag's expectation
    exceeds the true lag's.

    Example: sih claim --states 10 --matrices 1000 --lags 1 2 7 9 10 11 13 15 16 22 26 28 --seed 0 --out out/claim

    Args:
        out: The folder to write to.
        states: Number of states of the random matrices.
        matrices: How many random matrices.
        lags: The lag set, increasing.
        matrix: One transition matrix, .npy or .csv, instead of random ones (a search
            leaves a worst.csv).
        matrix_law: Distribution of the random matrices; uniform means uniform numbers,
            each row divided by its sum.
        concentration: Concentration of the Dirichlet rows; small is nearly
            deterministic.
        seed: Random seed for the matrices and the sequences.
        tolerance: The error allowed in each expectation.
        monte_carlo: Also estimate the expectations by sampling: printed (whole
            sequences, as in the paper) or trimmed (only the tokens involved). Can be
            resumed.
        sequences: Sequences per matrix and lag of the Monte Carlo estimate.
        length: Tokens in a sequence of the printed form.
        rational: Also enumerate one small matrix in exact rational arithmetic.
        figures: Whether to draw the figures.
    """
    if len(lags) < 2:
        raise ValueError(f"a comparison needs at least 2 lags, e.g. 1 2 3; got {lags}")
    if rational and matrix is None:
        raise ValueError("--rational enumerates the matrix of a file; give it with --matrix")
    if monte_carlo != "no" and matrix is not None:
        raise ValueError("--monte-carlo samples an ensemble of random matrices; leave out --matrix")
    console = plain_console(120)
    if matrix is None:
        P = random_matrices(
            states, matrices, seed=seed, concentration=concentration, law=matrix_law
        )
    else:
        check_drawn(matrix_law)
        P = load_transition_matrix(matrix)[None]
    table = claim_table(P, lags, tolerance=tolerance)
    console.print(_margin_table(table))
    pairs = _pairs(table, P.shape[-1])
    console.print(_pair_table(pairs))
    record = _record(table, P) | {
        "seed": seed,
        "matrix": str(matrix) if matrix else None,
        "pairs": pairs,
    }
    if matrix is None:
        record |= {"matrix_law": matrix_law, "concentration": concentration}
    if rational:
        record["rational_margins"] = _rational_margins(P[0], table, console)
    if monte_carlo != "no":
        check = MonteCarlo(
            states,
            matrices,
            table.lags,
            sequences,
            length,
            concentration,
            seed,
            monte_carlo,
            matrix_law=matrix_law,
        )
        record["monte_carlo"] = _compare(check, table, out / f"monte-carlo-{monte_carlo}", console)
    write_json(out / "claim.json", record, indent=1)
    console.print(f"wrote {out / 'claim.json'}")
    if figures:
        for path in _draw(table, P, out, seed):
            console.print(f"wrote {path}")
    worst = record["smallest_margin"]
    verdict = "holds" if table.holds else "is VIOLATED"
    console.print(
        f"Claim 1 {verdict} here: smallest gap {worst['gap']:.3e}, each expectation to {table.error:.1e}"
    )
    proven = sum(pair["status"] != OPEN for pair in pairs)
    console.print(
        f"{proven} of {len(pairs)} pairs of true lag and rival are theorems for all such matrices"
    )
    return 0 if table.holds else 1


def _margin_table(table: ClaimTable) -> Table:
    rows = [["true lag", "mean E_k", "mean of the largest rival", "mean gap", "smallest gap"]]
    own = table.expectations.diagonal(dim1=-2, dim2=-1)
    for j, lag in enumerate(table.lags):
        margins = table.margins[:, j]
        cells = (own[:, j].mean(), (own[:, j] - margins).mean(), margins.mean(), margins.min())
        rows.append([str(lag), *(f"{x.item():.6f}" for x in cells)])
    return table_of(
        rows,
        f"Claim 1 over {len(table.margins)} matrices, each expectation to {table.error:.0e}",
        left=0,
    )


def _pairs(table: ClaimTable, states: int) -> list[dict[str, Any]]:
    """Return for each true lag and rival the proof status, and a lower bound on the gap
    over the matrices.
    """
    least = table.gaps.amin(dim=0) - 2 * table.error
    place = {lag: j for j, lag in enumerate(table.lags)}
    return [
        {
            "true_lag": k,
            "rival": r,
            "status": status,
            "gap_at_least": least[place[k], place[r]].item(),
        }
        for (k, r), status in claim_status(table.lags, states=states).items()
    ]


def _pair_table(pairs: list[dict[str, Any]]) -> Table:
    """Return the proof status: one row per true lag and theorem, one per open rival."""
    rows: dict[tuple[int, str], list[str]] = {}
    for pair in pairs:
        status = pair["status"]
        if status == OPEN:
            status = f"open, gap at least {pair['gap_at_least']:.6f} by computation"
        rows.setdefault((pair["true_lag"], status), []).append(str(pair["rival"]))
    found = [
        (str(k), " ".join(rivals), status)
        for (k, status), rivals in sorted(rows.items(), key=lambda row: row[0][0])
    ]
    return table_of(
        [("true lag", "rivals", "Claim 1"), *found], "For which rivals Claim 1 is a theorem", left=3
    )


def _record(table: ClaimTable, P: torch.Tensor) -> dict[str, Any]:
    """Return the exact values as stored in claim.json, all of them if there is one
    matrix.
    """
    margins = table.margins
    where, lag = divmod(int(margins.argmin()), len(table.lags))
    rival = int(table.gaps[where, lag].argmin())
    smallest = {
        "gap": margins.min().item(),
        "matrix": where,
        "true_lag": table.lags[lag],
        "rival": table.lags[rival],
    }
    record: dict[str, Any] = {
        "lags": table.lags,
        "states": P.shape[-1],
        "matrices": len(P),
        "error": table.error,
    }
    record |= {"holds": table.holds, "smallest_margin": smallest}
    record |= {
        "mean_expectations": table.expectations.mean(dim=0).tolist(),
        "margins": margins.tolist(),
    }
    return record | (
        {"P": P[0].tolist(), "expectations": table.expectations[0].tolist()} if len(P) == 1 else {}
    )


def _rational_margins(P: torch.Tensor, table: ClaimTable, console: Console) -> list[str]:
    """Return the margin of every true lag as a fraction, and the distance of the
    floating-point one from it.
    """
    found = []
    for j, k in enumerate(table.lags):
        exact = rational_expectations(P, table.lags, k)
        margin = exact[j] - max(e for i, e in enumerate(exact) if i != j)
        off = abs(float(margin) - table.margins[0, j].item())
        console.print(
            f"true lag {k}: gap {float(margin):.15g} exactly; floating point is {off:.1e} off"
        )
        found.append(
            f"{margin.numerator}/{margin.denominator}"
            if margin.denominator < 10**40
            else repr(float(margin))
        )
    return found


def _compare(
    check: MonteCarlo, table: ClaimTable, folder: Path, console: Console
) -> dict[str, Any]:
    """Run or resume the Monte Carlo, and compare it with the exact values, in standard
    errors.
    """
    done = load_estimates(folder, check)
    try:
        for estimate in track(
            estimates(check, len(done)), check.matrices, f"{check.form} Monte Carlo", len(done)
        ):
            done.append(estimate)
            if len(done) % 20 == 0:
                save_estimates(folder, check, done)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{len(done)} matrices done; the same command resumes from {folder}"
        ) from None
    finally:
        save_estimates(folder, check, done)
    mean, error = torch.stack([e.mean for e in done]), torch.stack([e.error for e in done])
    z = (mean - table.expectations)[error > 0] / error[error > 0]
    estimated = ClaimTable(table.lags, mean, 0.0).margins
    root_mean_square = z.square().mean().sqrt()
    within_two = (z.abs() < 2).double().mean()
    result = {
        "form": check.form,
        "matrices": len(done),
        "sequences": check.sequences,
        "length": check.length,
        "mean_standard_error": error.mean().item(),
        "rms_deviation_in_standard_errors": root_mean_square.item(),
        "share_within_two_standard_errors": within_two.item(),
        "largest_deviation_in_standard_errors": z.abs().max().item(),
        "comparisons": z.numel(),
        "smallest_margin": estimated.min().item(),
    }
    for name, value in result.items():
        console.print(
            f"  {name.replace('_', ' ')}: {value:.4g}"
            if isinstance(value, float)
            else f"  {name}: {value}"
        )
    return result


def _draw(table: ClaimTable, P: torch.Tensor, out: Path, seed: int) -> list[Path]:
    from sih.claim import claim_cumulative, claim_expectations, claim_histogram
    from sih.results import style
    from sih.results.experiment import Experiment
    from sih.results.figure import shown

    size = P.shape[-1]
    drawn: list[tuple[Experiment[Any, Any], Any]] = [
        (claim_histogram.EXPERIMENT, claim_histogram.gaps_of(table, size)),
        (claim_expectations.EXPERIMENT, claim_expectations.bars_of(table, size)),
        (claim_cumulative.EXPERIMENT, claim_cumulative.of_matrix(P[0], table.lags, 1000, seed)),
    ]
    figures = {one.name: shown(one).draw(data) for one, data in drawn}
    return [path for name, figure in figures.items() for path in style.save(figure, out / name)]
