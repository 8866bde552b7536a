"""The explorer: how long a view takes, and fifty clients at once."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.timing import machine, medians
from sih.explorer.parse_state import read_state
from sih.explorer.trained_models import all_runs
from sih.explorer.view import make_view
from sih.explorer.view_bytes import pack
from sih.models.fast.threads import limited_threads
from sih.training.runs.run_store import RunStore

CLIENTS, REQUESTS = 50, 200
MODELS: list[dict[str, Any]] = [
    {},
    {"kind": "bayes"},
    {"kind": "position", "beta": 20.0},
    {"kind": "trained", "name": "standard-1.2.3"},
]
CASES: dict[str, dict[str, Any]] = {
    "3 lags, 5 states, length 128": {},
    "the same, two models": {"models": [{}, {"kind": "bayes"}]},
    "trained model": {"models": [MODELS[3]]},
    "3 lags, 5 states, length 256": {"length": 256},
    "16 lags, 10 states, length 256": {"length": 256, "states": 10, "lags": list(range(1, 17))},
}


@limited_threads(1)
def main() -> None:
    print(f"explorer: a view, a token changed each time ({machine()}; medians of 15)")
    runs = all_runs(RunStore())
    for name, value in CASES.items():
        edits = itertools.cycle(range(5))

        def view(value: dict[str, Any] = value, edits: Iterator[int] = edits) -> None:
            pack(make_view(read_state({**value, "edits": [[30, next(edits)]]}), runs))

        took = medians({"": view}, rounds=15)[""]
        size = len(pack(make_view(read_state(value), runs)))
        print(f"  {name}: {took * 1e3:.0f} ms, {size / 1e3:.0f} kB")
    load()


def load() -> None:
    """A server as `sih explore` starts it; each client asks for views of its own, every tenth of them nonsense."""
    command = [sys.executable, "-m", "sih.cli", "explore", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found
        address = found[0]
        answered: list[float] = []
        wrong: list[str] = []

        def client(number: int) -> None:
            with httpx.Client(base_url=address, timeout=300) as ask:
                for n in range(REQUESTS):
                    value = {
                        "seed": number,
                        "edits": [[20, n % 5]],
                        "models": [MODELS[(number + n) % len(MODELS)]],
                    }
                    begin = time.perf_counter()
                    answer = ask.post("api/view", json={"lags": "no"} if n % 10 == 9 else value)
                    answered.append(time.perf_counter() - begin)
                    if answer.status_code != (422 if n % 10 == 9 else 200):
                        wrong.append(f"{answer.status_code} {answer.text[:80]}")

        client(0)
        before, begin = memory(server.pid), time.perf_counter()
        answered.clear()
        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            most = max(most, memory(server.pid))
            time.sleep(0.2)
        took = time.perf_counter() - begin
        server.terminate()
    print(
        f"  {CLIENTS} clients, {REQUESTS} requests each: {len(answered) / took:.0f} a second, median answer "
        f"{median(answered):.2f} s, longest {max(answered):.2f} s, {len(wrong)} errors {wrong[:1] or ''}"
    )
    print(
        f"  memory: {before / 1e3:.0f} MB after one client, at most {most / 1e3:.0f} MB under load"
    )


def memory(pid: int) -> int:
    """Resident kilobytes of a process (Linux)."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main()
