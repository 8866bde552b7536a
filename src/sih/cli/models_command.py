"""`sih models`: the trained models that come with the package."""

import torch

from sih.cli.runs_command import show_runs
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.kernels.choice import fastest
from sih.runs.run_store import RunStore


def models(plain: bool = False, machine: bool = False, seed: int = 0) -> None:
    """List the trained models that come with the package, with their quality beside the reference predictors'.

    Example: sih models --plain

    `sih.load(NAME)` gives the model, `sih.open_run(NAME)` its run: task, configuration and metrics too.

    Args:
        plain: only the names, one on each line.
        machine: how models compute on this machine, instead: the ways, the seconds each was measured to take.
        seed: unused; a list is not random.
    """
    store = RunStore()
    if machine:
        print("\n".join(_machine()))
    elif plain:
        print("\n".join(store.names()))
    else:
        found = [store.run(name) for name in store.names()]
        show_runs(found, "Shipped models, each trained by `sih train`; `sih runs show NAME` says how")


def _machine() -> list[str]:
    """Say in lines which path each kind of model takes here, and what was measured."""
    found = fastest()
    took = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in found.seconds.items())
    usual = "compiled" if found.compiled else "fused"
    return [
        f"processor: {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}",
        f"standard and relative models: path {usual!r} in float32 on a CPU, 'fused' elsewhere",
        f"  attention of the paper's size, forward and backward, on one thread: {took or 'not measured: ' + found.why}",
        f"disentangled models: path {DisentangledTransformer.paths[0]!r}",
        "`model(tokens, path=...)` takes another path; SIH_COMPILED=0 does without the compiled one",
    ]
