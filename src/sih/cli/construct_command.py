"""`sih construct`: write a circuit's weights, with their certificate. `sih verify`:
check saved ones again.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console
from torch import Tensor

from sih.base.errors import DTYPES, FieldError
from sih.base.files import atomic_folder, read_json, read_table, write_json
from sih.base.files import reading as file_reading
from sih.beyond.any_parents import construct_parents
from sih.circuits import Verification, error_table
from sih.circuits import construct as construct_circuit
from sih.circuits import verify as verify_circuit
from sih.circuits.any_circuit import AnyCircuit
from sih.circuits.circuit_table import notes_of_certificate
from sih.circuits.verification import circuit_and_task
from sih.cli.circuit_flags import given_options, with_circuit_flags
from sih.cli.matrix_flag import MatrixLaw
from sih.cli.printing import plain_console, table_of
from sih.cli.sample_command import choose_matrix, seeded
from sih.models.storage import FILES, NOTES, write_card, write_files
from sih.task import ParentsTask, Task
from sih.training.runs.run_store import load

CERTIFICATE = "certificate.json"


def construct(
    out: Path = Path("circuit"),
    lags: tuple[int, ...] = (1, 2, 3),
    length: int = 128,
    parents: Path | None = None,
    target: str = "paper",
    kind: Annotated[
        Literal["disentangled", "standard", "relative"], tyro.conf.arg(aliases=("--model",))
    ] = "disentangled",
    readout: Literal["probability", "logit"] = "probability",
    dtype: Literal["float64", "float32"] = "float64",
    states: int | None = None,
    matrix: Path | None = None,
    matrix_law: MatrixLaw = "dirichlet",
    concentration: float = 1.0,
    table: bool = False,
    seed: int = 0,
    **options: Any,
) -> int:
    """Write the selective induction head for a task by hand, check it, and save it with
    its certificate.

    Not every circuit has every option. An option that the circuit lacks is an error,
    which lists those it has.

    Example: sih construct --lags 1 3 4 --states 5 --length 128 --target bayes --out circuit

    Args:
        out: The folder to write: config.json, weights.safetensors, notes.json (circuit
            and task), certificate.json.
        lags: The task's lags.
        length: Longest sequence that the model accepts, in tokens.
        parents: Any parents, instead of lags and length: a .csv, .npy or .json table
            with one row per hypothesis: the position of each token's parent or -1, and
            last that of the token after the sequence.
        target: The circuit: paper, two-lags (a single second-layer head), bayes
            (optimal), or looking (evidence passes through the attention pattern of
            layer 2).
        kind: The kind of transformer: disentangled; standard, of a width that does not
            grow with length, for target bayes; or relative, with relative positions:
            one head in every layer, any lags, any length, for targets paper and bayes.
        readout: Output probabilities (P^T), or logits (log P^T, before a softmax).
        dtype: Number format of the weights.
        states: Number of states of a random matrix. Default: 5.
        matrix: A transition matrix, .npy or .csv, instead of a random one.
        matrix_law: Distribution of the random matrix; uniform means uniform numbers,
            each row divided by its sum.
        concentration: Concentration of the Dirichlet rows.
        table: Also show the largest error over masks, temperatures and number formats.
        seed: Random seed for the matrix.
        options: Options of the circuit, as flags: `circuit_flags`.
    """
    rng = seeded(seed)
    P = choose_matrix(rng, states, matrix, matrix_law, concentration)
    if parents is not None and (table or (lags, length) != ((1, 2, 3), 128)):
        raise FieldError(
            "parents", "--parents says which task it is; leave --lags, --length and --table out"
        )
    asked = {"target": target, "readout": readout, **given_options(options)}
    task: Task | ParentsTask
    built: Any
    if parents is None:
        task = Task(P, lags, length)
        built = construct_circuit(task, dtype=DTYPES[dtype], kind=kind, **asked)
    elif kind == "disentangled":
        task = read_parents(parents, P)
        built = construct_parents(task, dtype=DTYPES[dtype], **asked)
    else:
        says = f"the kind {kind!r} is for lags; any parents are written as 'disentangled'"
        raise FieldError("kind", says)
    found = verify_circuit(built, task)
    with atomic_folder(out, (*FILES, CERTIFICATE)) as folder:
        write_files(built, folder)
        write_card(built, folder, out)
        write_json(folder / CERTIFICATE, found.to_dict(), indent=1)
    console = plain_console()
    _describe(console, built.circuit)
    _report(console, found)
    if table and isinstance(task, Task):
        _show_table(console, task, {**asked, "kind": kind})
    console.print(f"saved -> {out}")
    return 0 if found.ok else 1


def start_from(words: list[str]) -> tuple[Callable[..., int], list[str]]:
    """Return `construct` with one flag per option of the circuits."""
    return with_circuit_flags(construct), words


def verify(
    folder: Annotated[Path, tyro.conf.Positional],
    size: int = 16,
    seed: int = 0,
    length: int | None = None,
    out: Path | None = None,
) -> int:
    """Run saved weights and compare every layer with the closed form of their circuit
    (exit code 1 if they differ).

    Example: sih verify circuit

    Args:
        folder: A folder of `sih construct`.
        size: Number of sequences of the task to run, besides adversarial ones.
        seed: Random seed for the sequences.
        length: Length of the sequences. Default: that of the task; another one needs
            relative positions.
        out: A file for the result, .json.
    """
    if out is not None and out.suffix != ".json":
        raise ValueError(f"what was found is written as .json; got {out}")
    model = load(folder)
    model.notes = model.notes or _read_notes(folder / CERTIFICATE)
    task = None if length is None else at_length(circuit_and_task(model)[1], length)
    found = verify_circuit(model, task, size=size, rng=seeded(seed))
    if out is not None:
        write_json(out, found.to_dict(), indent=1)
    console = plain_console()
    _describe(console, circuit_and_task(model)[0])
    _report(console, found)
    return 0 if found.ok else 1


def at_length(task: Task | ParentsTask, length: int) -> Task:
    """Return a circuit's task for sequences of another length."""
    if isinstance(task, ParentsTask):
        raise FieldError("length", "a table of parents has one length, its own; leave --length out")
    return task.with_length(length)


def read_parents(path: Path, P: Tensor) -> ParentsTask:
    """Return the task of a table of parents with this matrix; the last column is the
    parent of the token after the sequence.
    """
    if path.suffix not in (".npy", ".csv", ".json"):
        raise FieldError(
            "parents", f"a table of parents is read from a .csv, .npy or .json file; got {path}"
        )
    with file_reading(path, "is no table of parents"):
        value = read_json(path) if path.suffix == ".json" else read_table(path)
        table = torch.as_tensor(value)
        if table.is_floating_point() and torch.equal(table, table.round()):
            table = table.long()
        return ParentsTask(P, table, max(table.shape[-1] - 1, 1))


def _read_notes(path: Path) -> dict[str, Any]:
    """Return a circuit and its task from a certificate of version 0.1, which wrote no
    notes.

    Its claims about errors and bounds are ignored.
    """
    missing = f"there is neither {path.parent / NOTES} nor {path}; `sih construct` writes the notes beside the weights"
    with file_reading(path, "is no certificate with a circuit", missing=missing):
        return notes_of_certificate(read_json(path))


def _describe(console: Console, circuit: AnyCircuit) -> None:
    for line in circuit.describe():
        console.print(line)


def _show_table(console: Console, task: Task, options: dict[str, Any]) -> None:
    rows = [["dtype", "beta", "lam", "error", "within tolerance"]]
    varied = {name: value for name, value in options.items() if name not in ("lam", "beta")}
    for row in error_table(task, **varied):
        error = "refused: lam too small" if row["max_error"] is None else f"{row['max_error']:.1e}"
        within = "" if row["max_error"] is None else f"{row['ok']} ({row['tolerance']:.1e})"
        rows.append(
            [
                row["dtype"],
                "" if row["beta"] is None else f"{row['beta']:g}",
                f"{row['lam']:g}",
                error,
                within,
            ]
        )
    console.print(table_of(rows, "Largest error against the closed form", left=0))


def _report(console: Console, found: Verification) -> None:
    rows = [["what", "error", "where"]]
    for each in found.comparisons:
        where = f"sequence {each.sequence} ({each.kind}), position {each.position}"
        rows.append([each.site, f"{each.error:.1e}", where])
    console.print(table_of(rows, f"Largest error against the closed form ({found.dtype})", left=3))
    what = ", ".join(f"{count} {kind}" for kind, count in found.sequences.items())
    console.print(
        f"on sequences: {what}; exact from position {found.first_exact_position} on (counted from 0)"
    )
    if found.posterior_error is not None:
        bound = "" if found.bound is None else f", certified {found.bound:.1e}"
        console.print(
            f"largest error against the exact posterior: {found.posterior_error:.1e}{bound}"
        )
    verdict = "holds" if found.ok else "FAILS"
    shown = found.max_error if math.isfinite(found.max_error) else math.inf
    console.print(
        f"the circuit {verdict}: largest error {shown:.1e}, tolerance {found.tolerance:.1e}"
    )
    if found.reason is not None:
        console.print(found.reason)
