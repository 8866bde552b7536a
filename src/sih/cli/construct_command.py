"""`sih construct`: write a circuit's weights, with their certificate. `sih verify`: check saved ones again."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

from sih.cli.sample_command import Kind, choose_matrix, seeded
from sih.construction import Circuit, Verification, error_table
from sih.construction import construct as build
from sih.construction import verify as compare
from sih.files import read_json, reading, write_json
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.storage import save
from sih.runs.run_store import load
from sih.task import Task

CERTIFICATE = "certificate.json"


def construct(
    out: Path = Path("circuit"),
    lags: tuple[int, ...] = (1, 2, 3),
    length: int = 128,
    target: Literal["paper", "bayes", "two-lags"] = "paper",
    third: Literal["auto", "mask", "position"] = "auto",
    heads: int | None = None,
    evidence: Literal["mean", "sum"] = "mean",
    sink: bool = False,
    lam: float | None = None,
    beta: float = 100.0,
    temper: float | None = None,
    symmetric: bool | None = None,
    readout: Literal["probability", "logit"] = "probability",
    dtype: Literal["float64", "float32"] = "float64",
    states: int | None = None,
    matrix: Path | None = None,
    kind: Kind = "dirichlet",
    concentration: float = 1.0,
    table: bool = False,
    seed: int = 0,
) -> int:
    """Write the selective induction head for a task by hand, check it, and save it with its certificate.

    Example: sih construct --lags 1 3 4 --states 5 --length 128 --target bayes --out circuit

    Args:
        out: the folder to write: config.json, weights.safetensors, certificate.json.
        lags: the task's lags.
        length: positions of the model.
        target: the paper's circuit, the Bayes-optimal one, or the single head for two lags.
        third: the form of the third layer; auto takes the mask form where it can be.
        heads: second-layer heads (the least number that loses nothing unless said).
        evidence: averaged, as in the paper, or added up.
        sink: rest on position 0, so that the closed form holds from the first position on.
        lam: the masks' strength (500 unless more is needed).
        beta: inverse temperature of the third layer; inf for the limit.
        temper: exponent on the probabilities in the first layer.
        symmetric: two first-layer heads of opposite exponent, True or False (target bayes; by default in float32).
        readout: P^T, or log P^T before a softmax.
        dtype: of the weights.
        states: number of states of a random matrix (5 unless said).
        matrix: a transition matrix, .npy or .csv, instead of a random one.
        kind: how a random matrix is drawn.
        concentration: of the Dirichlet rows.
        table: also show the largest error over masks, temperatures and number formats.
        seed: of the matrix.
    """
    rng = seeded(seed)
    task = Task(choose_matrix(rng, states, matrix, kind, concentration), lags, length)
    options: dict[str, Any] = {
        "target": target,
        "third": None if third == "auto" else third,
        "heads": heads,
        "evidence": evidence,
        "sink": True if sink else None,
        "temper": temper,
        "symmetric": symmetric,
        "readout": readout,
    }
    number = {"float64": torch.float64, "float32": torch.float32}[dtype]
    model = build(task, lam=lam, beta=beta, dtype=number, **options)
    found = compare(model, task)
    save(model, out)
    record = {"circuit": model.circuit.to_dict(), "task": task.to_dict(), "verification": found.to_dict()}
    write_json(out / CERTIFICATE, record, indent=1)
    console = Console(soft_wrap=True, highlight=False)
    _describe(console, model.circuit)
    _report(console, found)
    if table:
        _show_table(console, task, options)
    console.print(f"saved -> {out}")
    return 0 if found.ok else 1


def verify(
    folder: Annotated[Path, tyro.conf.Positional], size: int = 16, seed: int = 0, out: Path | None = None
) -> int:
    """Run saved weights and compare every layer with the closed form of their circuit; exit code 1 if they differ.

    Example: sih verify circuit

    Args:
        folder: what `sih construct` wrote.
        size: sequences of the task to run, besides adversarial ones.
        seed: of the sequences.
        out: a file for what was found, .json.
    """
    if out is not None and out.suffix != ".json":
        raise ValueError(f"what was found is written as .json; got {out}")
    model = load(folder)
    if not isinstance(model, DisentangledTransformer):
        raise ValueError(f"{folder} holds a standard transformer; a circuit is a disentangled one")
    circuit, task = _read(folder / CERTIFICATE)
    found = compare(model, task, circuit=circuit, size=size, rng=seeded(seed))
    if out is not None:
        write_json(out, found.to_dict(), indent=1)
    console = Console(soft_wrap=True, highlight=False)
    _describe(console, circuit)
    _report(console, found)
    return 0 if found.ok else 1


def _read(path: Path) -> tuple[Circuit, Task]:
    with reading(
        path, "is no certificate", missing=f"there is no {path}; `sih construct` writes it beside the weights"
    ):
        record = read_json(path)
        return Circuit.from_dict(record["circuit"]), Task(**record["task"])


def _describe(console: Console, circuit: Circuit) -> None:
    pattern = " ".join("·" if head < 0 else str(head + 1) for head in circuit.colours)
    console.print(f"lags {' '.join(map(str, circuit.lags))}, target {circuit.target}, third layer by {circuit.third}")
    unused = circuit.colours.count(-1) / len(circuit.colours)
    lost = f"; {unused:.0%} of past transitions go unused" if unused and circuit.third != "key" else ""
    console.print(f"{circuit.heads} second-layer head(s), offsets 0, 1, 2, ... go to head {pattern} (and again){lost}")
    console.print(f"lam {circuit.lam:g}, beta {circuit.beta:g}, temper {circuit.temper:g}, evidence {circuit.evidence}")


def _show_table(console: Console, task: Task, options: dict[str, Any]) -> None:
    shown = Table(title="Largest error against the closed form", title_justify="left")
    for column in ("dtype", "beta", "lam", "error", "within tolerance"):
        shown.add_column(column, justify="right")
    for row in error_table(task, **options):
        error = "refused: lam too small" if row["max_error"] is None else f"{row['max_error']:.1e}"
        within = "" if row["max_error"] is None else f"{row['ok']} ({row['tolerance']:.1e})"
        shown.add_row(row["dtype"], f"{row['beta']:g}", f"{row['lam']:g}", error, within)
    console.print(shown)


def _report(console: Console, found: Verification) -> None:
    table = Table(title=f"Largest error against the closed form ({found.settings['dtype']})", title_justify="left")
    for column in ("what", "error", "where"):
        table.add_column(column)
    for name, error in found.errors.items():
        table.add_row(name, f"{error:.1e}", found.where[name])
    console.print(table)
    what = ", ".join(f"{count} {kind}" for kind, count in found.sequences.items())
    console.print(f"on sequences: {what}; exact from position {found.first_row} on (counted from 0)")
    if found.posterior_error is not None:
        bound = "" if found.bound is None else f", certified {found.bound:.1e}"
        console.print(f"largest error against the exact posterior: {found.posterior_error:.1e}{bound}")
    verdict = "holds" if found.ok else "FAILS"
    shown = found.max_error if math.isfinite(found.max_error) else math.inf
    console.print(f"the circuit {verdict}: largest error {shown:.1e}, tolerance {found.tolerance:.1e}")
