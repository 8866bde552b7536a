"""Tables of parents that a circuit can be written for, with the form of the third
layer.
"""

from __future__ import annotations

import itertools

from sih.base.errors import FieldError
from sih.task import ParentsTask


def check_table(task: ParentsTask) -> None:
    """Raise a FieldError unless a circuit can be written: no token may have a parent
    under some hypotheses only.
    """
    lacks = task.table < 0
    mixed = (lacks.any(dim=0) & ~lacks.all(dim=0)).nonzero().flatten()
    if len(mixed):
        n, h = int(mixed[0]), int(lacks[:, mixed[0]].nonzero()[0])
        why = "a circuit keeps what a token says at its parents, and has no place for 'none'"
        raise FieldError(
            "parents", f"token {n} has no parent under hypothesis {h} and one under another: {why}"
        )
    if lacks[:, 1:].all():
        raise FieldError("parents", "no token has a parent: there is nothing to copy")


def shared_parent(task: ParentsTask) -> tuple[int, int, int] | None:
    """Return a row and two hypotheses with the same next parent but different earlier
    ones, or None.

    The form "parents" cannot serve such a row, unless all hypotheses share the parent
    (`parents_circuit.py`).
    """
    count, choice = len(task.table), (task.table != task.table[0]).any(dim=0)[1:]
    for g, h in itertools.combinations(range(count), 2):
        differ = (task.table[h] != task.table[g]).cumsum(dim=0)[:-1] > 0
        rows = (differ & (task.table[h] == task.table[g])[1:] & choice).nonzero()
        if len(rows):
            return int(rows[0]), g, h
    return None
