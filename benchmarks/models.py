"""Training steps of the transformers: fast paths against the plain equations and the machine's own limit.

A step is forward, backward and Adam at the paper's settings (T = 128, S = 5). Times are medians, taken in turn in one
process, on as many threads as the caller set (on one, the processor's time counts, which other work hardly changes).
`python -m benchmarks.models --plot FILE` draws the growth table too.

The exit code is 1 if the path that a standard model takes by default is not the fastest one there is.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

import sih
from benchmarks.timing import Clock, in_turn, machine, medians, ratio
from sih.models.base import Model
from sih.models.fast import compiled
from sih.models.parts import ROWS

WHOLE = 10**9
"""As many sequences at a time as there are: the loss in one piece."""
SIDE = 2048
"""Of the matrix product that gives the machine's rate."""
SLACK = 1.10
"""How many times as long as the fastest path the default may take: 5 % more, and 5 % for the noise of two medians."""


def clock() -> Clock:
    return time.process_time if torch.get_num_threads() == 1 else time.perf_counter


def plain_step(model: nn.Module, tokens: Tensor, path: str) -> Callable[[], object]:
    """As one would write it."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        output = model(tokens, path=path)[:, :-1].flatten(0, 1)
        nn.functional.cross_entropy(output, tokens[:, 1:].flatten()).backward()
        optimiser.step()

    return step


def fast_step(
    model: Model, tokens: Tensor, path: str | None = None, rows: int | None = None
) -> Callable[[], object]:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimiser.zero_grad()
        sih.next_token_loss(model, tokens, path, rows).backward()
        optimiser.step()

    return step


def standard_operations(
    heads: Sequence[int], batch: int, time: int = 128, dim: int = 64, qk_dim: int = 32
) -> int:
    """Forward and backward (twice the forward) of the equations as they stand, masked entries included."""
    return 3 * 2 * batch * sum(heads) * (time * dim * (2 * qk_dim + dim) + time**2 * (qk_dim + dim))


def disentangled_operations(
    heads: Sequence[int], batch: int, time: int = 128, states: int = 5
) -> int:
    total, dim = 0, time + states
    for count in heads:
        total += count * (time * dim**2 + 2 * time**2 * dim)
        dim *= 1 + count
    return 3 * 2 * batch * (total + time * dim * states)


def sequences(batch: int, time: int = 128, states: int = 5) -> Tensor:
    return torch.randint(states, (batch, time), generator=torch.Generator().manual_seed(0))


def report(
    title: str, calls: dict[str, Callable[[], object]], operations: int, rounds: int, wanted: float
) -> dict[str, list[float]]:
    """Print a table of the calls, the first of them the slow one, and give their times."""
    a, b = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
    times = in_turn({**calls, "product": lambda: a @ b}, rounds, clock())
    products = times.pop("product")
    rate = 2 * SIDE**3 / statistics.median(products)
    limit = operations / rate
    print(
        f"  {title}: the equations' operations alone would take {limit * 1e3:.0f} ms at {rate / 1e9:.0f} GFLOP/s"
    )
    slow = next(iter(times.values()))
    for name, found in times.items():
        of_limit = ratio(found, [operations / (2 * SIDE**3) * seconds for seconds in products])
        print(
            f"    {name:<24} {statistics.median(found) * 1e3:7.0f} ms   {ratio(slow, found):4.2f}x   "
            f"{of_limit:4.2f} of that time"
        )
    print(f"    wanted of the last one: {wanted}x or more, at most 1.5 of that time")
    return times


def standard(rounds: int = 7) -> list[str]:
    """Print the table and return what is wrong: a default that is not the fastest path."""
    tokens, wrong = sequences(256), []
    for heads in ((1, 1, 1), (1, 3, 1)):
        model = sih.Transformer(5, 128, dim=64, qk_dim=32, heads=heads)
        calls = {path: fast_step(model, tokens, path) for path in reversed(_here(model))}
        title = f"standard {list(heads)}, batch 256"
        times = report(
            title,
            {
                "plain": plain_step(model, tokens, "plain"),
                "plain, in parts": calls.pop("plain"),
                **calls,
                "default": fast_step(model, tokens),
            },
            standard_operations(heads, 256),
            rounds,
            wanted=2,
        )
        wrong += _slower_than(times, title, model)
    print(
        f"  the default path of standard models is the fastest, within {SLACK - 1:.0%}: {'NO' if wrong else 'yes'}"
    )
    return wrong


def relative(rounds: int = 7) -> list[str]:
    """Print steps with relative positions beside the standard model's, and return what is wrong with the default.

    Limits are on the ratio to the standard model's default: for the default with C, and for torch alone.
    """
    wrong = []
    limits = {
        (128, 127): (1.6, 2.3),
        (128, 16): (1.3, 1.55),
        (64, 63): (1.45, 2.3),
        (64, 16): (1.35, 1.55),
    }
    for (length, reach), wanted in limits.items():
        tokens = sequences(256, length)
        model = sih.RelativeTransformer(5, reach)
        calls = {"standard": fast_step(sih.Transformer(5, length, heads=(1, 1, 1)), tokens)}
        calls |= {path: fast_step(model, tokens, path) for path in _here(model)[:-1]}
        times = in_turn({**calls, "default": fast_step(model, tokens)}, rounds, clock())
        usual = times.pop("standard")
        found = ", ".join(f"{path} {ratio(each, usual):.2f}" for path, each in times.items())
        title = f"relative [1, 1, 1], T = {length}, reach {reach}"
        print(
            f"  {title}: times as long as standard: {found} (at most {wanted[0]} with C, {wanted[1]} without)"
        )
        wrong += _slower_than(times, title, model)
    return wrong


def own_step(rounds: int = 7) -> None:
    """Print what a step that a user writes gains from C: all sequences at once, in one piece."""
    tokens = sequences(256)
    for model in (sih.Transformer(5, 128, heads=(1, 1, 1)), sih.RelativeTransformer(5, 16)):
        if "compiled" not in _here(model):
            continue
        calls = {path: plain_step(model, tokens, path) for path in ("fused", "compiled")}
        times = in_turn({**calls, "loss": fast_step(model, tokens, "compiled")}, rounds, clock())
        gain, beside = (
            ratio(times["fused"], times["compiled"]),
            ratio(times["compiled"], times["loss"]),
        )
        name = type(model).__name__
        print(
            f"  {name}, 256 sequences at once: C {gain:.2f}x; {beside:.2f} of the time of next_token_loss"
        )


def _here(model: Model) -> list[str]:
    """List the paths that a model has on this machine, the equations last."""
    return [path for path in model.paths if path != "compiled" or compiled.library() is not None]


def _slower_than(times: dict[str, list[float]], title: str, model: Model) -> list[str]:
    """Say which paths are faster than the default."""
    return [
        f"{title}: the default, {model.usual_path()!r}, takes {slower:.2f} times as long as {name!r}"
        for name, found in times.items()
        if (slower := ratio(times["default"], found)) > SLACK
    ]


def disentangled(rounds: int = 3) -> None:
    tokens = sequences(64)
    for heads in ((1, 3, 1), (1, 5, 1)):
        model = sih.DisentangledTransformer(5, 128, heads)
        calls = {
            "dense": plain_step(model, tokens, "dense"),
            "structured, in one piece": fast_step(model, tokens, rows=WHOLE),
            "structured": fast_step(model, tokens),
        }
        report(
            f"disentangled {list(heads)}, batch 64",
            calls,
            disentangled_operations(heads, 64),
            rounds,
            wanted=2.4,
        )


def short(rounds: int = 9) -> None:
    """Print what it is worth to take more sequences at a time where they are short."""
    tokens = sequences(256, 32)
    for model in (
        sih.Transformer(5, 32),
        sih.Transformer(5, 32, heads=(1, 1, 1)),
        sih.DisentangledTransformer(5, 32, (1, 3, 1)),
    ):
        calls = {"always": fast_step(model, tokens, rows=ROWS), "usual": fast_step(model, tokens)}
        times = in_turn(calls, rounds, clock())
        took = {name: f"{statistics.median(found) * 1e3:.0f} ms" for name, found in times.items()}
        gain = ratio(times["always"], times["usual"])
        name = f"{type(model).__name__} {list(model.config.heads)}"
        print(
            f"  length 32, {name}: {ROWS} sequences at a time {took['always']}, more {took['usual']}, {gain:.2f}x"
        )


def memory() -> None:
    """Peak resident memory of two steps above that of the process before them, each in a process of its own."""
    kinds = ("standard", "relative, reach 16", "relative, all offsets")
    grown = {kind: _grown(kind, (1, 1, 1)) for kind in kinds}
    shown = ", ".join(f"{kind} {size / 1024:.0f} MB" for kind, size in grown.items())
    print(f"  [1, 1, 1], T = 128, batch 256, peak memory of a step: {shown}")
    for heads in ((1, 3, 1), (1, 5, 1)):
        grown = {}
        for kind in ("dense", "structured, in one piece", "structured"):
            grown[kind] = _grown(kind, heads)
        shown = ", ".join(
            f"{kind} {size / 1024:.0f} MB ({size / grown['dense']:.0%})"
            for kind, size in grown.items()
        )
        print(f"  disentangled {list(heads)}, batch 64, peak memory of a step: {shown}")


def _grown(kind: str, heads: Sequence[int]) -> int:
    """Kilobytes, measured in a process of its own."""
    threads = ["--threads", str(torch.get_num_threads())]
    words = [
        sys.executable,
        "-m",
        "benchmarks.models",
        *threads,
        "--memory",
        kind,
        "--heads",
        *map(str, heads),
    ]
    return int(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def memory_of(kind: str, heads: Sequence[int]) -> int:
    """Kilobytes."""
    if kind.startswith(("standard", "relative")):
        reach = 16 if kind.endswith("16") else 127
        one = (
            sih.RelativeTransformer(5, reach)
            if kind.startswith("relative")
            else sih.Transformer(5, 128, heads=heads)
        )
        return _growth_of(fast_step(one, sequences(256)))
    model, tokens = sih.DisentangledTransformer(5, 128, heads), sequences(64)
    if kind == "dense":
        step = plain_step(model, tokens, "dense")
    else:
        step = fast_step(model, tokens, rows=WHOLE if "one piece" in kind else None)
    return _growth_of(step)


def _growth_of(step: Callable[[], object]) -> int:
    before = peak()
    step()
    step()
    return peak() - before


def peak() -> int:
    """Kilobytes this process has had at most. Linux hands a parent's ru_maxrss on to its children, so not that one."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(
        int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")
    )


Growth = dict[str, list[tuple[int, float, float]]]


def growth(rounds: int = 3, batch: int = 16) -> Growth:
    """Seconds of a step of each model against T, the heads of layer 2, and S; all else as in the paper."""
    table: Growth = {}
    for name, values in (
        ("T", (64, 128, 256, 512)),
        ("heads", (1, 2, 4, 8)),
        ("S", (2, 8, 32, 64)),
    ):
        table[name] = []
        for value in values:
            time = value if name == "T" else 128
            heads = (1, value, 1) if name == "heads" else (1, 3, 1)
            states = value if name == "S" else 5
            tokens = sequences(batch, time, states)
            found = medians(
                {
                    "standard": fast_step(sih.Transformer(states, time, heads=heads), tokens),
                    "disentangled": fast_step(
                        sih.DisentangledTransformer(states, time, heads), tokens
                    ),
                },
                rounds,
                clock(),
            )
            table[name].append((value, found["standard"], found["disentangled"]))
    return table


def draw(table: Growth, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes, (name, rows) in zip(
        figure.subplots(1, len(table), sharey=True), table.items(), strict=True
    ):
        values = [value for value, _, _ in rows]
        axes.loglog(values, [standard * 1e3 for _, standard, _ in rows], "o-", label="standard")
        axes.loglog(
            values, [disentangled * 1e3 for _, _, disentangled in rows], "s-", label="disentangled"
        )
        axes.set_xticks(values, [str(value) for value in values])
        axes.minorticks_off()
        axes.set_xlabel({"T": "length T", "heads": "heads in layer 2", "S": "states S"}[name])
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("ms a step, batch 16")
    figure.axes[0].legend()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main(plot: Path | None = None) -> int:
    print(f"models: forward, backward and Adam, T = 128, S = 5 ({machine()}; medians)")
    wrong = standard() + relative()
    own_step()
    disentangled()
    short()
    memory()
    table = growth()
    print(
        "  ms a step at batch 16, heads [1, 3, 1] unless said: standard, disentangled (medians of 3)"
    )
    for name, rows in table.items():
        shown = ";  ".join(
            f"{value}: {one * 1e3:.0f}, {other * 1e3:.0f}" for value, one, other in rows
        )
        print(f"    {name:<6} {shown}")
    if plot is not None:
        draw(table, plot)
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=Path, help="draw how a step's cost grows")
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--heads", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory:
        print(memory_of(options.memory, tuple(options.heads)))
        sys.exit(0)
    sys.exit(main(options.plot))
