"""How many second-layer heads does a table of parents need? More for longer sequences, unless parents stay near.

For K hypotheses, "slots": the least number of heads that tell tokens apart (smallest and largest of five tables); and
"parents": heads with which the paper's one third-layer head will do, found by first fit, if it can serve the table.
"""

from collections.abc import Iterator

from torch import Tensor

import sih
from sih.beyond.any_parents.tables import shared_parent
from sih.beyond.any_parents.token_heads import pair_heads, token_heads

P = [[0.9, 0.1], [0.5, 0.5]]


def tables(count: int, length: int) -> Iterator[tuple[str, Tensor]]:
    for seed in range(5):
        yield "random graphs", sih.random_parents(count, length, rng=seed)
        yield "random trees", sih.random_parents(count, length, rng=seed, distinct=False)
        yield "windows of 8", sih.random_parents(count, length, rng=seed, reach=8)
    yield "lags 1 to K", sih.Task(P, tuple(range(1, count + 1)), length).parents(length + 1)


print("| K | table | form | T = 16 | 32 | 64 | 128 |")
print("|---|---|---|---|---|---|---|")
for count in (2, 3, 5):
    cells: dict[tuple[str, str], dict[int, list[int]]] = {}
    for length in (16, 32, 64, 128):
        for name, table in tables(count, length):
            found = token_heads(table[:, :length])
            assert found.exact
            cells.setdefault((name, "slots"), {}).setdefault(length, []).append(found.heads)
            paired = cells.setdefault((name, "parents"), {}).setdefault(length, [])
            if not paired and shared_parent(sih.ParentsTask(P, table, length)) is None:
                paired.append(1 + max(map(max, pair_heads(table))))
    for (name, form), by_length in cells.items():
        ranges = [
            "-" if not found else f"{min(found)} - {max(found)}" for found in by_length.values()
        ]
        said = [
            text.split(" - ")[0] if len(set(text.split(" - "))) == 1 else text for text in ranges
        ]
        print(f"| {count} | {name} | {form} | {' | '.join(said)} |")
