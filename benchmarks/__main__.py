"""`python -m benchmarks [NAME ...]`: all of them, or those named. The exit code is 1 if one of them failed.

`python -m benchmarks NAME --flag ...` gives the flags to that one, e.g. `python -m benchmarks peers --device cuda`.
"""

from __future__ import annotations

import importlib
import sys

import torch

NAMES = (
    "start",
    "sampler",
    "predictors",
    "circuits",
    "heads",
    "claim",
    "models",
    "peers",
    "training",
    "explorer",
)

FLAGGED = ("peers",)
"""Benchmarks that take flags."""


def main(words: list[str]) -> int:
    torch.set_num_threads(2)
    flags_begin = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    names, flags = words[:flags_begin], words[flags_begin:]
    if flags and (len(names) != 1 or names[0] not in FLAGGED):
        print(
            f"flags go with one of {', '.join(FLAGGED)}, e.g. peers --device cuda", file=sys.stderr
        )
        return 2
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(
            f"there is no benchmark {unknown[0]!r}; the benchmarks are {', '.join(NAMES)}",
            file=sys.stderr,
        )
        return 2
    if flags:
        code: int = importlib.import_module(f"benchmarks.{names[0]}").main(flags)
        return code
    failed = [
        name for name in names or NAMES if importlib.import_module(f"benchmarks.{name}").main()
    ]
    if failed:
        print(f"FAILED: {', '.join(failed)} (the lines above say what)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
