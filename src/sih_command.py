"""The `sih` command, outside the package: its commands by name, and the help that needs
none of them.

The package takes a second or two to load, and a Ctrl-C may come meanwhile. `sih`,
`sih --help`, `sih --version` and the answer to an unknown command do not load it.
"""

from __future__ import annotations

import os
import signal
import sys
from difflib import get_close_matches

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Data": {
        "sample": ("sih.cli.sample_command:sample", "draw sequences from the task"),
        "predict": ("sih.cli.predict_command:predict", "predict the next token of every sequence"),
        "infer": ("sih.cli.infer_command:infer_lag", "infer the lag of a series of your own"),
    },
    "Models": {
        "models": ("sih.cli.models_command:models", "list the trained models in the package"),
        "train": ("sih.cli.train_command:train", "train a model, or resume a run"),
        "sweep": ("sih.cli.sweep_command:sweep", "train every run of a grid, here or on Ray"),
        "runs": ("sih.cli.runs_command:runs", "list training runs and compare them"),
        "runs show": ("sih.cli.runs_command:show", "show how good a run is and what its heads do"),
        "runs evaluate": ("sih.cli.evaluate_command:evaluate", "measure runs on fresh sequences"),
        "runs formation": (
            "sih.cli.formation_command:show_formation",
            "show when the circuit appeared",
        ),
        "runs rm": ("sih.cli.runs_command:remove", "remove a run, after asking"),
        "export": (
            "sih.cli.export_command:export",
            "write a model for TransformerLens, or read one",
        ),
    },
    "Circuits": {
        "construct": ("sih.cli.construct_command:construct", "write a circuit's weights by hand"),
        "verify": (
            "sih.cli.construct_command:verify",
            "check a saved circuit against its formulas",
        ),
        "heads": ("sih.cli.heads_command:heads", "find the least number of heads for some lags"),
        "benchmark circuits": (
            "sih.cli.benchmark_command:circuits",
            "score circuit discovery methods",
        ),
    },
    "Paper": {
        "reproduce": (
            "sih.cli.reproduce_command:reproduce",
            "make every figure and judge the statements",
        ),
        "figure": ("sih.cli.figure_command:figure", "make one figure by name"),
        "claim": ("sih.cli.claim_command:claim", "compute Claim 1 exactly"),
        "claim search": (
            "sih.cli.claim_search_command:search",
            "search for a counterexample to Claim 1",
        ),
        "claim rates": (
            "sih.cli.claim_consequences:rates",
            "compute how often a wrong lag is selected",
        ),
        "claim beta": ("sih.cli.claim_consequences:beta", "compare temperatures with BMA and ML"),
    },
    "Look": {
        "explore": ("sih.cli.explore_command:explore", "open the interactive page"),
    },
}
"""The commands by group: module and function, and a summary. A name may consist of two
words."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def run() -> None:
    """Run the command line. A Ctrl-C while the package is loaded ends the process
    without a traceback.
    """
    if (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):  # otherwise a shell had it ignored
        signal.signal(signal.SIGINT, _leave)
    words = sys.argv[1:]
    if (said := answer(words)) is not None:
        print(said)
        sys.exit(0)
    from sih.cli import main

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())


def answer(words: list[str]) -> str | None:
    """Return the output of `sih WORDS` for the overview or the version, otherwise None."""
    if words in ([], ["-h"], ["--help"], ["help"]):
        return overview()
    if words in (["--version"], ["version"]):
        from importlib.metadata import version

        return f"sih {version('selective-induction-heads')}"
    return None


def overview() -> str:
    """Return the commands by group, one line each."""
    width = max(map(len, COMMANDS))
    parts = [
        "usage: sih COMMAND [options]",
        "Selective induction heads: how transformers select causal structures in context.",
        "Start here: `sih explore` opens a page on which a circuit selects the lag;\n"
        "`sih reproduce --out out` makes the paper's figures and out/report.html.",
    ]
    for group, commands in GROUPS.items():
        lines = (f"  {name:<{width}}  {summary}" for name, (_, summary) in commands.items())
        parts.append("\n".join((f"{group}:", *lines)))
    parts.append("`sih help COMMAND` explains a command, with an example.")
    return "\n\n".join(parts)


def unknown(name: str) -> str:
    """Return the message about an unknown command: the nearest ones, and how to list
    all.
    """
    nearest = get_close_matches(name, COMMANDS, n=3)
    meant = f"; did you mean {' or '.join(nearest)}?" if nearest else "."
    return f"there is no command {name!r}{meant} `sih --help` lists all"


def _leave(*_: object) -> None:
    os.write(2, b"sih: interrupted\n")
    os._exit(130)
