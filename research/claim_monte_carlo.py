"""Runs the paper's check of Claim 1 (App. E) as printed, and writes what its figures show of it.

    python research/claim_monte_carlo.py --kept runs/claim --out src/sih/claim/sampled.npz

A thousand matrices with 10 states and ten with 25 are drawn, each of uniform numbers with rows
divided by their sums. For each matrix and each of the paper's twelve lags there are a thousand
sequences of length 1000, of which the last transition counts. That takes some eight core-minutes.
What is done is kept in the folder `--kept`, and the same command goes on from there. The file has

    gaps      of each matrix with 10 states and each true lag: the mean of the true lag less the
              largest of the others'
    error     the largest standard error of any of these means
    bars_10   the means of the first ten matrices with 10 states, by true lag and lag
    bars_25   those of the ten matrices with 25 states
    about     what was sampled

`sih.claim.sampled` reads it. The numbers of a matrix depend on the seed and on its place alone.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from sih.base.files import write_arrays
from sih.base.stats import Estimate
from sih.claim.exact import ClaimTable
from sih.claim.monte_carlo import MonteCarlo, estimates, load_estimates, save_estimates
from sih.claim.sampled import BARS, about_checks

CHECK = MonteCarlo(form="printed", matrix_law="uniform")
CHECK_25 = MonteCarlo(form="printed", matrix_law="uniform", num_states=25, matrices=10)
KEPT_EVERY = 10


def sampled(check: MonteCarlo, kept: Path) -> Estimate[torch.Tensor]:
    """Sample every matrix that is not kept, and return means and errors, (matrix, true lag, lag)."""
    done = load_estimates(kept, check)
    for one in estimates(check, first=len(done)):
        done.append(one)
        if len(done) % KEPT_EVERY == 0:
            save_estimates(kept, check, done)
    return Estimate(
        torch.stack([one.mean for one in done]), torch.stack([one.error for one in done])
    )


def write_sampled(out: Path, ten: Estimate[torch.Tensor], more: Estimate[torch.Tensor]) -> None:
    """Write the file that `sih.claim.sampled` reads."""
    write_arrays(
        out,
        gaps=ClaimTable(CHECK.lags, ten.mean, 0.0).margins.float().numpy(),
        error=ten.error.max().float().numpy(),
        bars_10=ten.mean[:BARS].mean(dim=0).float().numpy(),
        bars_25=more.mean[:BARS].mean(dim=0).float().numpy(),
        about=about_checks(replace(CHECK, matrices=len(ten.mean)), CHECK_25),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Sample both, and write the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kept", type=Path, default=Path("runs/claim"))
    parser.add_argument("--out", type=Path, default=Path("src/sih/claim/sampled.npz"))
    parser.add_argument("--matrices", type=int, default=CHECK.matrices, help="with 10 states")
    asked = parser.parse_args(words)
    torch.set_num_threads(1)
    more = sampled(CHECK_25, asked.kept / "states25")
    ten = sampled(replace(CHECK, matrices=asked.matrices), asked.kept / "states10")
    write_sampled(asked.out, ten, more)


if __name__ == "__main__":
    main()
