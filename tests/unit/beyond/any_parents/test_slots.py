"""What the heads of the form "slots" copy adds up to the parents."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

import sih
from sih.beyond.any_parents.targets import PaperParentsCircuit


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 1000), st.booleans())
def test_what_slots_copy_adds_up_to_the_parents(count: int, seed: int, distinct: bool) -> None:
    """And each key of a head stands for one hypothesis in all rows."""
    table = tuple(map(tuple, sih.random_parents(count, 16, rng=seed, distinct=distinct).tolist()))
    nobody = ((-1,) * 16,)
    circuit = PaperParentsCircuit(
        third="slots", parents=table, length=16, head_of_token=nobody, evidence="sum", beta=1.0
    )
    assert len(circuit.copying) in (1, count + 1, 2 * count + 2)
    for row, h in itertools.product(circuit.rows.nonzero().flatten().tolist(), range(count)):
        total = [0.0] * 16
        for head in circuit.copying:
            assert 0 <= head.keys[row, h] <= row
            total[int(head.keys[row, h])] += head.times
        assert total == [float(n == table[h][row + 1]) for n in range(16)]
    for head in circuit.copying:
        stands: dict[int, int] = {}
        for row, h in itertools.product(circuit.rows.nonzero().flatten().tolist(), range(count)):
            assert stands.setdefault(int(head.keys[row, h]), h) == h
