"""Claim 1 exactly against the Monte Carlo at equal accuracy; and the sizes that must be quick."""

from __future__ import annotations

import time

import torch

import sih
from benchmarks.timing import machine, medians
from sih.claim.exact import claim_table
from sih.claim.monte_carlo import PAPER_LAGS, printed, random_matrices, trimmed
from sih.models.fast.threads import limited_threads


@limited_threads(
    1
)  # the arrays fit a core's cache: a second thread gains little, and loses much when disturbed
def main() -> None:
    P = random_matrices(10, 20, seed=0)
    rng = torch.Generator().manual_seed(0)
    samples = 4000
    print(f"claim: 12 true lags, 10 states, a matrix ({machine()}; medians of 5)")
    exact = {t: claim_table(P, PAPER_LAGS, tolerance=t) for t in (1e-3, 1e-8, 1e-12)}
    found = medians(
        {
            "exact to 1e-03": lambda: claim_table(P, PAPER_LAGS, tolerance=1e-3),
            "exact to 1e-08": lambda: claim_table(P, PAPER_LAGS, tolerance=1e-8),
            "exact to 1e-12": lambda: claim_table(P, PAPER_LAGS, tolerance=1e-12),
            "trimmed": lambda: trimmed(P[0], PAPER_LAGS, samples=samples, rng=rng),
            "printed": lambda: printed(
                P[0], PAPER_LAGS, sequences=samples // 10, length=1000, rng=rng
            ),
        },
        rounds=5,
    )
    for tolerance in (1e-3, 1e-8, 1e-12):
        took = found[f"exact to {tolerance:.0e}"] / len(P)
        off = (exact[tolerance].expectations - exact[1e-12].expectations).abs().max().item()
        print(
            f"  exact, {exact[tolerance].error:.0e} guaranteed: {took * 1e3:8.2f} ms ({off:.0e} from the finest)"
        )
    runs = {
        "trimmed": trimmed(P[0], PAPER_LAGS, samples=samples, rng=rng),
        "printed": printed(P[0], PAPER_LAGS, sequences=samples // 10, length=1000, rng=rng),
    }
    for form, run in runs.items():
        error = run.error.mean().item()
        print(f"  {form} Monte Carlo, standard error {error:.1e}: {found[form] * 1e3:8.1f} ms")
        for tolerance in (1e-3, 1e-8):
            needed = (
                found[form] * (error / tolerance) ** 2
            )  # the error falls as the root of the time
            ratio = needed / (found[f"exact to {tolerance:.0e}"] / len(P))
            print(
                f"    for {tolerance:.0e} it would take {needed:.3g} s: {ratio:.3g} times the exact method"
            )

    print("  whole tables, each once")
    for states, matrices, tolerance in ((10, 1000, 1e-8), (25, 10, 1e-8), (50, 1, 1e-8)):
        many = random_matrices(states, matrices, seed=0)
        begin = time.perf_counter()
        table = claim_table(many, PAPER_LAGS, tolerance=tolerance)
        took = time.perf_counter() - begin
        print(
            f"    {matrices} matrices of {states} states: {took:6.2f} s, to {table.error:.0e}, "
            f"smallest gap {table.margins.min():.5f}"
        )
    lags = (1, 2, 3, 4, 6, 8, 10, 12, 20, 24, 40, 48, 50, 60, 96, 100)
    P = sih.random_transition_matrix(50, rng=rng)
    begin = time.perf_counter()
    table = claim_table(P, lags)
    print(
        f"    1 matrix of 50 states, 16 lags up to 100: {time.perf_counter() - begin:6.2f} s, to {table.error:.0e}"
    )


if __name__ == "__main__":
    main()
