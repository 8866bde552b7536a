"""`python -m torture`: run the parts and print what was tried, what was clean and what failed."""

from __future__ import annotations

import argparse
import math
import os
import sys

from torture import asking, commands, damage, kills, places
from torture.trial import Tally, tally, warm

PARTS = {
    "commands": ("malformed command lines", commands.trials),
    "damage": ("damaged files", damage.trials),
    "kills": ("kills at file operations", kills.trials),
    "random-kills": ("kills at random moments", kills.random_trials),
    "interrupts": ("Ctrl-C at random moments", kills.interrupt_trials),
    "disk": ("full disks", places.full_disk_trials),
    "folders": ("hostile folders", places.folder_trials),
    "requests": ("fuzzed requests, 50 each", asking.fuzz_trials),
    "clients": ("100 clients; a soak", asking.client_trials),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all unless said")
    parser.add_argument("--share", type=float, default=1.0, help="of the trials of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of trials, to repeat them")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, help="after which a part begins no new trial"
    )
    given = parser.parse_args()
    warm()
    found = []
    for name in given.parts or PARTS:
        title, trials = PARTS[name]
        one = tally(name, trials(given.share), given.seed, given.only, given.seconds)
        if not one.tried:
            one.skipped = (
                "needs root, for a tmpfs"
                if name == "disk" and os.getuid()
                else "no trials in this share"
            )
        found.append(one)
        print(_line(title, one), flush=True)
        for number, _ in one.failed:
            print(
                f"    again: python -m torture {name} --share {given.share} --seed {given.seed} --only {number}"
            )
    failed = sum(len(one.failed) for one in found)
    print(f"{sum(one.tried for one in found)} tried, {failed} failed")
    return 1 if failed else 0


def _line(title: str, one: Tally) -> str:
    clean = one.tried - len(one.failed)
    counts = (
        f"{one.tried:>5} tried  {clean:>5} clean  {len(one.failed):>4} failed  {one.seconds:6.0f} s"
    )
    return f"{title:<28}{counts}" if not one.skipped else f"{title:<28}skipped: {one.skipped}"


if __name__ == "__main__":
    sys.exit(main())
