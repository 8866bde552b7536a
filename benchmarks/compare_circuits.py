"""Whether two checkouts construct the same circuits: weights, bounds, and the errors that `verify` finds.

    python -m benchmarks.compare_checkouts circuits OLD NEW [STEP]

Lag sets are those within {1, ..., 8}, every STEP-th of the 255 (1 unless given), some with zeros in P or a prior; for
`FITTED`, heads that read both sides are fitted, which takes seconds; and there are some tables of parents. Weights and
bounds are to be the same to `EXACT`, relative to what is largest; errors are rounding, so they may differ by the
tolerance they are held to.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

STATES, LENGTH = 3, 26
EXACT = 1e-12
PLAIN: dict[str, list[dict[str, Any]]] = {
    "paper": [
        {},
        {"third": "position"},
        {"evidence": "sum"},
        {"sink": True},
        {"heads": 1},
        {"heads": 2, "evidence": "sum"},
        {"beta": math.inf, "temper": 0.5},
        {"beta": 3, "lam": 700.0, "readout": "logit"},
        {"dtype": "float32"},
    ],
    "bayes": [
        {},
        {"symmetric": False},
        {"heads": 1},
        {"heads": 2},
        {"heads": 8},
        {"temper": 0.01, "readout": "logit"},
        {"dtype": "float32"},
        {"heads": 2, "symmetric": False},
        {"kind": "standard"},
    ],
    "looking": [{}, {"temper": 1.0, "looking": 1.0}, {"temper": 0.1, "readout": "logit"}],
    "two-lags": [{}, {"beta": 3.0, "temper": 0.5}, {"beta": math.inf}, {"dtype": "float32"}],
}
OF_PARENTS: dict[str, list[dict[str, Any]]] = {
    "paper": [
        {},
        {"third": "slots"},
        {"third": "parents"},
        {"evidence": "sum"},
        {"beta": 3.0, "dtype": "float32"},
    ],
    "bayes": [{}, {"third": "slots", "symmetric": False}, {"temper": 0.01, "readout": "logit"}],
}
FITTED = ((1, 2, 3), (1, 3, 4), (2, 5))
NUMBERS = ("tolerance", "early_tolerance", "posterior_error", "bound", "first_exact_position")


def compare(old: Path, new: Path, step: int = 1) -> Iterator[str]:
    """Yield what differs, and print how much was compared."""
    count, largest = (
        Counter[str](),
        dict.fromkeys(("weights", "bounds", "posterior errors", "errors"), 0.0),
    )
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("old.npy", "new.npy")]
        workers = [
            _started(checkout, file) for checkout, file in zip((old, new), files, strict=True)
        ]
        for case in cases(step):
            for worker in workers:
                _say(worker, case)
            was, now = (_answer(worker) for worker in workers)
            where = f"{case['target']} {case['options']} of {case.get('lags') or 'parents'}"
            if "refused" in was or "refused" in now:
                count["refused"] += 1
                if ("refused" in was) != ("refused" in now):
                    yield f"{where}: {was.get('refused', 'built')} became {now.get('refused', 'built')}"
                continue
            count[case["target"]] += 1
            yield from (f"{where}: {line}" for line in _differences(was, now, files, largest))
        for worker in workers:
            worker.communicate()
    print(f"compared: {dict(count)}")
    print("largest differences:", ", ".join(f"{what} {gap:.3g}" for what, gap in largest.items()))


def cases(step: int) -> Iterator[dict[str, Any]]:
    """Yield what to construct, as plain JSON."""
    sets = [lags for size in range(1, 9) for lags in itertools.combinations(range(1, 9), size)]
    for number, lags in enumerate(sets):
        if number % step and lags not in FITTED:
            continue
        prior = (
            [2 * (k + 1) / (len(lags) * (len(lags) + 1)) for k in range(len(lags))]
            if number % 3 == 1
            else None
        )
        task = {"lags": lags, "number": number, "prior": prior}
        for target, several in PLAIN.items():
            yield from ({**task, "target": target, "options": options} for options in several)
        if lags in FITTED:
            for symmetric in (True, False):
                both = {"heads": 1, "reading": "both", "symmetric": symmetric}
                yield {**task, "target": "bayes", "options": both}
    for number, hypotheses in enumerate((2, 2, 3, 4)):
        for target, several in OF_PARENTS.items():
            for options in several:
                yield {
                    "hypotheses": hypotheses,
                    "number": number,
                    "target": target,
                    "options": options,
                }


def _differences(was: Any, now: Any, files: list[Path], largest: dict[str, float]) -> Iterator[str]:
    weights = [np.load(file) for file in files]
    if weights[0].shape != weights[1].shape:
        yield f"{weights[0].size} weights became {weights[1].size}"
        return
    gap = float(np.abs(weights[0] - weights[1]).max() / np.abs(weights[0]).max())
    largest["weights"] = max(largest["weights"], gap)
    if gap > EXACT:
        yield f"weights differ by {gap:.3g} of the largest"
    for name in NUMBERS:
        a, b = was[name], now[name]
        if a is None or b is None:
            if a != b:
                yield f"{name} was {a} and is {b}"
            continue
        far = abs(a - b) / max(abs(a), abs(b), 1e-300)
        what = "posterior errors" if name == "posterior_error" else "bounds"
        largest[what] = max(largest[what], far)
        if far > EXACT and not (name == "posterior_error" and abs(a - b) <= was["tolerance"]):
            yield f"{name} was {a} and is {b}"
    if was["sites"] != now["sites"] or was["ok"] != now["ok"]:
        yield f"compared {was['sites']}, ok {was['ok']}; now {now['sites']}, ok {now['ok']}"
        return
    for site, a, b in zip(was["sites"], was["errors"], now["errors"], strict=True):
        largest["errors"] = max(largest["errors"], abs(a - b))
        if abs(a - b) > was["tolerance"]:
            yield f"the error at {site} was {a:.3g} and is {b:.3g}"


def _started(checkout: Path, weights: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, "-m", "benchmarks.compare_circuits", str(weights)]
    root = Path(__file__).parents[1]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=root)


def _say(worker: subprocess.Popen[str], case: dict[str, Any]) -> None:
    assert worker.stdin
    worker.stdin.write(json.dumps(case) + "\n")
    worker.stdin.flush()


def _answer(worker: subprocess.Popen[str]) -> dict[str, Any]:
    assert worker.stdout
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"{' '.join(map(str, worker.args))} ended; its message is above")  # type: ignore[arg-type]
    answer: dict[str, Any] = json.loads(line)
    return answer


def _construct(case: dict[str, Any]) -> Any:
    """Construct with the checkout that this process imports, by public names alone."""
    import torch

    import sih

    options = dict(case["options"])
    if "dtype" in options:
        options["dtype"] = getattr(torch, options["dtype"])
    P = sih.random_transition_matrix(STATES, rng=case["number"])
    if case["number"] % 5 == 2:
        P = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]], dtype=torch.float64)
    if "lags" in case:
        task = sih.Task(P, tuple(case["lags"]), LENGTH, case["prior"])
        return sih.construct(task, target=case["target"], **options)
    parents = sih.random_parents(case["hypotheses"], 16, rng=case["number"])
    build = getattr(sih, "construct_parents", sih.construct)
    return build(sih.ParentsTask(P, parents, 16), target=case["target"], **options)


def _work(weights: Path) -> None:
    """Answer each case of standard input, the weights in a file."""
    import torch

    import sih

    torch.set_num_threads(1)
    for line in sys.stdin:
        try:
            model = _construct(json.loads(line))
        except ValueError as refusal:
            print(json.dumps({"refused": str(refusal)}), flush=True)
            continue
        found = sih.verify(model)
        state = sorted(model.state_dict().items())
        np.save(weights, torch.cat([weight.double().flatten() for _, weight in state]).numpy())
        answer = {name: getattr(found, name) for name in (*NUMBERS, "ok")}
        comparisons = {
            "sites": [c.site for c in found.comparisons],
            "errors": [c.error for c in found.comparisons],
        }
        print(json.dumps({**answer, **comparisons}), flush=True)


if __name__ == "__main__":
    _work(Path(sys.argv[1]))
