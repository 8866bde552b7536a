"""The page as one file that needs no server: its modules joined, with a few sequences
and models.

Browsers load no modules from files, so the modules become functions of one script.
`import {a} from "./m.js"` reads the value that the function of m returned. The page's
own policy allows nothing but that script, by its hash.
"""

import base64
import gzip
import hashlib
import itertools
import json
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sih.base.errors import FieldError
from sih.base.files import atomic_write
from sih.explorer.channels_view import make_channels
from sih.explorer.circuit_check import verdict
from sih.explorer.circuit_choice import fit_of, resolve
from sih.explorer.head_ladder import ladder
from sih.explorer.python_snippet import snippet
from sih.explorer.state import (
    BOTH,
    TRAINED,
    ModelChoice,
    State,
    choice_json,
    shown_circuits,
    to_json,
)
from sih.explorer.trained_models import Runs, all_runs, fitting_model
from sih.explorer.view import View, make_view
from sih.explorer.view_bytes import pack
from sih.heads import least_heads, two_sided
from sih.training.runs.run_store import RunStore

STATIC = Path(__file__).parent / "static"
IMPORT = re.compile(r'^import \{ (.+) \} from "\./(\w+)\.js";\n', re.M)
EXPORT = re.compile(r"^export ((?:async )?(?:const|function|class) (\w+))", re.M)
HEADS = 6
"""The most heads of the Bayes circuits in a page."""
MOST = 64
"""Sequences in a page; each adds up to a few hundred kilobytes."""


def export_page(path: str | Path, state: State, sequences: int) -> int:
    """Write the page with the sequences of this seed and the following ones, and return
    its size in bytes.
    """
    if Path(path).suffix != ".html":
        raise ValueError(f"the page is written as .html, e.g. page.html; got {path}")
    if not 1 <= sequences <= MOST:
        raise ValueError(f"--sequences is a number from 1 to {MOST}; got {sequences}")
    page = saved_page(record(state, sequences, all_runs(RunStore()))).encode()
    with atomic_write(path) as file:
        file.write(page)
    return len(page)


def record(state: State, sequences: int, runs: Runs) -> dict[str, Any]:
    """Return the content of a saved page: views of every sequence by every model that
    fits, certificates, Python.
    """
    models = fitting(state, runs)
    states = [replace(state, seed=state.seed + n) for n in range(sequences)]
    known = [_known(state, model, runs) for model in models]
    views, channels, python = {}, {}, {}
    for (s, sequence), (m, model) in itertools.product(enumerate(states), enumerate(models)):
        alone = replace(sequence, models=(model,))
        views[f"{s}.{m}"] = _packed(make_view(alone, runs))
        if "refused" not in known[m]:
            channels[f"{s}.{m}"] = _packed(make_channels(alone, 0, runs))
        python[f"{s}.{m}"] = snippet(alone)
        for n, other in enumerate(models):
            python[f"{s}.{m}.{n}"] = snippet(replace(sequence, models=(model, other)))
    shown = {
        "state": {**to_json(state), "seed": state.seed},
        "seeds": [sequence.seed for sequence in states],
    }
    return {**shown, "models": known, "views": views, "channels": channels, "python": python}


def fitting(state: State, runs: Runs) -> list[ModelChoice]:
    """Return the state's own model, then the others that fit its task, equal circuits
    once.

    The Bayes circuits are included with every number of heads up to `HEADS`, fitted if
    necessary.
    """
    task = state.task()
    found, circuits = [], []
    numbers = range(1, min(HEADS, least_heads(task.lags).heads) + 1)
    bayes = (ModelChoice(kind, heads=heads) for kind in ("bayes", BOTH) for heads in numbers)
    for choice in (state.models[0], *(ModelChoice(kind) for kind in shown_circuits()), *bayes):
        with suppress(FieldError):
            if needed := fit_of("models.0", choice, task):
                two_sided(*needed)
            circuit = resolve("models.0", choice, task)
            exact = (
                choice.kind == BOTH and ladder(choice, circuit)[circuit.heads - 1]["built"] != BOTH
            )
            if circuit not in circuits and not exact:
                circuits.append(circuit)
                found.append(choice)
    for name in runs:
        with suppress(FieldError):
            fitting_model("models.0", name, task, runs)
            found.append(ModelChoice(TRAINED, name))
    return found


def saved_page(record: dict[str, Any]) -> str:
    """Return index.html with the style, the script and the record inside, and a policy
    that allows just these.
    """
    style = (STATIC / "style.css").read_text()
    script = f"\n{bundle('app')}"
    icon = base64.b64encode((STATIC / "icon.svg").read_bytes()).decode()
    data = json.dumps(record, separators=(",", ":")).replace("<", "\\u003c")
    allowed = f"script-src {_hash(script)}; style-src {_hash(style)}; img-src data: blob:"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    meta, saved = (
        '<meta charset="utf-8">',
        f'<script type="application/json" id="saved">{data}</script>',
    )
    replaced = {
        meta: f'{meta}\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        'href="icon.svg"': f'href="data:image/svg+xml;base64,{icon}"',
        '<link rel="stylesheet" href="style.css">': f"<style>{style}</style>",
        "Served from this machine; nothing is sent anywhere.": "A saved page; nothing is sent anywhere.",
        '<script type="module" src="app.js"></script>': f'{saved}\n<script type="module">{script}</script>',
    }
    page = (STATIC / "index.html").read_text()
    for old, new in replaced.items():
        if page.count(old) != 1:
            raise AssertionError(
                f"index.html has {page.count(old)} of {old!r}; a saved page needs one"
            )
        page = page.replace(old, new)
    return page


def bundle(entry: str) -> str:
    """Return the script of a module and all its imports, each as a function called
    once, before its users.
    """
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name in done:
            return
        source = (STATIC / f"{name}.js").read_text()
        for _, needed in IMPORT.findall(source):
            add(needed)
        body = IMPORT.sub(r"const { \1 } = module_\2;\n", source)
        names = ", ".join(found for _, found in EXPORT.findall(source))
        body = EXPORT.sub(r"\1", body)
        done[name] = f"const module_{name} = (() => {{\n{body}return {{ {names} }};\n}})();\n"

    add(entry)
    return "".join(done.values())


def _known(state: State, model: ModelChoice, runs: Runs) -> dict[str, Any]:
    """Return the facts on a model in a saved page, for any sequence; `refused` is the
    reason if it has no channels.
    """
    alone, choice = replace(state, models=(model,)), choice_json(model)
    if not model.trained:
        heads = resolve("models.0", model, state.task()).heads
        return {"choice": choice, "heads": heads, "certificate": verdict(alone, 0)}
    try:
        make_channels(alone, 0, runs)
    except FieldError as error:
        return {"choice": choice, "certificate": None, "refused": str(error)}
    return {"choice": choice, "certificate": None}


def _packed(view: View) -> str:
    return base64.b64encode(gzip.compress(pack(view), mtime=0)).decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
