"""How long `least_heads` takes: all lag sets within 1 .. 12, and random sets with lags up to 64.

python benchmarks/heads.py [SETS]: SETS random sets for each number of lags (3 by default).
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time

from sih.heads import least_heads, verify_colouring, verify_lower_bound

TIME_LIMIT = 5.0


def main(number: int = 3) -> None:
    begin = time.perf_counter()
    answers = [
        least_heads(lags) for k in range(1, 13) for lags in itertools.combinations(range(1, 13), k)
    ]
    taken = time.perf_counter() - begin
    settled = sum(answer.exact for answer in answers)
    preferred = sum(answer.preferred for answer in answers)
    print(
        f"all {len(answers):,} lag sets within 1 .. 12: {taken:.2f} s on one core; {settled:,} settled, "
        f"{preferred:,} with the preferred pattern proved first"
    )
    begin = time.perf_counter()
    right = sum(
        verify_colouring(answer.lags, answer.colours)
        and verify_lower_bound(answer.lags, answer.certificate)
        for answer in answers
    )
    print(f"checked again by separate code: {right:,} hold, {time.perf_counter() - begin:.2f} s")

    draw = random.Random(0)
    print(f"random sets within 1 .. 64, {number} each, limit {TIME_LIMIT:g} s:")
    print("lags  settled  median s  longest s  widest bracket")
    for k in range(2, 13):
        times, gaps = [], []
        for _ in range(number):
            lags = tuple(sorted(draw.sample(range(1, 65), k)))
            begin = time.perf_counter()
            answer = least_heads(lags, time_limit=TIME_LIMIT)
            times.append(time.perf_counter() - begin)
            gaps.append(answer.upper - answer.lower)
        print(
            f"{k:4}  {gaps.count(0):3}/{number:<3}  {statistics.median(times):8.2f}  {max(times):9.2f}  {max(gaps):7}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
