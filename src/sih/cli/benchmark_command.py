"""`sih benchmark circuits`: quality of methods that search for circuits with known
edges.
"""

from pathlib import Path

from sih.base.errors import FieldError, check_choice, check_sizes
from sih.base.files import write_rows
from sih.beyond.discovery.ground_truth import (
    CIRCUITS,
    Discovery,
    discover,
    known_circuit,
    save_circuits,
)

STANDARD = ("1.2.3-soft", "1.2.3-hard")
"""Circuits that are also measured as standard transformers, which takes longer."""


def circuits(
    out: Path, circuits: tuple[str, ...] = tuple(CIRCUITS), pairs: int = 2, seed: int = 0
) -> None:
    """Compare five methods of circuit discovery on circuits with known edges, hidden
    among decoys.

    Writes the circuits (`sih.load_circuits` reads them), results.csv, and a figure.
    Takes some minutes.

    Example: sih benchmark circuits --out bench --circuits 1.2.3-soft 1.2.3-hard

    Args:
        out: The folder to write.
        circuits: Names of circuits. Default: all.
        pairs: Pairs of sequences for each two lags.
        seed: Random seed for the matrix, the decoys and the sequences.
    """
    from sih.beyond.discovery.discovery_figure import draw_discovery
    from sih.results.style import save

    check_sizes(pairs=pairs)
    if not circuits:
        raise FieldError("circuits", f"circuits is one or more of {', '.join(CIRCUITS)}")
    for name in circuits:
        check_choice("circuits", name, tuple(CIRCUITS))
    made = [known_circuit(name, seed) for name in circuits]
    save_circuits(out / "circuits", made)
    forms = [
        form
        for one in made
        for form in ([one, one.as_standard(seed)] if one.name in STANDARD else [one])
    ]
    measured = []
    for form in forms:
        for found in discover(form, pairs=pairs, seed=seed):
            measured.append(found)
            j = found.judged
            print(
                f"{found.circuit:>22} {found.method:>11}: area {j.area:.3f}, precision {j.precision:.3f}",
                flush=True,
            )
    table = Discovery(tuple(measured))
    write_rows(out / "results.csv", table.table())
    save(draw_discovery(table), out / "discovery")
    print(f"saved -> {out}")
