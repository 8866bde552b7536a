"""The pages of the reference: every public name, by task, and the records that functions return."""

from __future__ import annotations

import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True)
class Task:
    """A page of the reference: what a reader wants to do, and the public names for it."""

    title: str
    about: str
    names: tuple[str, ...]
    records: tuple[str, ...] = ()
    """Classes that are no public names and belong here, by the path where they are defined."""


TASKS = {
    "data": Task(
        "Tasks and sequences",
        "A task says what the parents are and where the matrix comes from. `sih.sample` draws a"
        " `sih.Batch` of sequences from it.",
        (
            *("Task", "SwitchingTask", "FreshTask", "ParentsTask", "random_parents"),
            *("sample", "Batch", "FreshBatches"),
            *("random_transition_matrix", "random_uniform", "random_doubly_stochastic"),
            *("random_sparse", "random_near_periodic", "as_transition_matrix"),
            *("load_transition_matrix", "stationary_distribution"),
        ),
    ),
    "predict": Task(
        "Predict and score",
        "A predictor maps tokens and a task to a distribution over the next token at every"
        " position. The scores compare it with the true distribution.",
        (
            *("bma", "maximum_likelihood", "selective", "plug_in", "ngram", "known_lag"),
            *("truth", "stationary_law", "LagTracker"),
            *("lag_posterior", "lag_log_likelihood", "selective_weights", "mixture"),
            *("kl_to_truth", "mean_kl", "lag_accuracy"),
        ),
    ),
    "models": Task(
        "Models",
        "Three kinds of attention-only transformer, with a name for every activation."
        " `model.trace(tokens)` returns the activations of one forward pass.",
        (
            *("Transformer", "DisentangledTransformer", "RelativeTransformer"),
            "DisentangledRelativeTransformer",
            *("to_standard", "next_token_loss", "load", "save"),
            *("to_transformer_lens", "from_transformer_lens"),
        ),
        ("sih.models.base.Model", "sih.models.sites.Trace"),
    ),
    "circuits": Task(
        "Circuits",
        "Circuits are weights written by formula. `sih.construct` builds one and `sih.verify`"
        " compares it with its closed form; the other functions count heads.",
        (
            *("construct", "verify", "circuit_weights", "circuit_edges", "construct_parents"),
            *("least_heads", "exact_heads", "head_offsets", "two_sided"),
        ),
        (
            "sih.circuits.any_circuit.AnyCircuit",
            "sih.circuits.circuit.Circuit",
            "sih.circuits.paper.PaperOptions",
            "sih.circuits.two_lags.TwoLagOptions",
            "sih.circuits.bayes.BayesOptions",
            "sih.circuits.looking.LookingOptions",
            "sih.beyond.any_parents.targets.PaperParentsOptions",
            "sih.beyond.any_parents.targets.BayesParentsOptions",
        ),
    ),
    "read": Task(
        "Read a model",
        "What does each head attend to, what does the prediction need, and which way does the"
        " evidence take? The last four names judge methods that discover circuits.",
        (
            *("diagnose", "Diagnosis", "ablate", "patch", "evidence_flow"),
            *("counterfactual_pairs", "edge_scores", "known_circuit", "load_circuits"),
        ),
    ),
    "train": Task(
        "Train, and open runs",
        "`sih.train` yields one step per update. A run is a folder that the command `sih train`"
        " writes and `sih.open_run` opens; shipped models are runs too.",
        ("TrainConfig", "train", "open_run", "Run", "evaluate", "formation"),
    ),
    "series": Task(
        "Real series",
        "Which lag explains a series of symbols, if the transition matrix is unknown?",
        ("infer", "Inference", "permutation_test"),
    ),
    "theory": Task(
        "Theory",
        "Claim 1 of the paper: its expectations, exactly, and for which lags it is proved.",
        ("claim_expectations", "claim_status"),
    ),
}
"""The pages of the reference, in the order of the menu."""

MOVED = {
    "analysis": (
        "Diagnosis ablate counterfactual_pairs diagnose edge_scores evidence_flow known_circuit"
        " load_circuits patch"
    ),
    "beyond": "formation",
    "evidence": "lag_log_likelihood lag_posterior mixture",
    "export": "from_transformer_lens to_transformer_lens",
    "heads": "exact_heads head_offsets least_heads two_sided",
    "inference": "Inference infer permutation_test",
    "markov": (
        "as_transition_matrix load_transition_matrix random_doubly_stochastic random_near_periodic"
        " random_sparse random_transition_matrix random_uniform stationary_distribution"
    ),
    "metrics": "kl_to_truth lag_accuracy mean_kl",
    "parents_circuits": "construct_parents",
    "predictors": (
        "bma known_lag maximum_likelihood ngram plug_in selective selective_weights stationary_law"
        " truth"
    ),
    "runs": "Run evaluate load open_run",
    "task": ("Batch FreshBatches FreshTask ParentsTask SwitchingTask Task random_parents sample"),
    "tracker": "LagTracker",
    "training": "TrainConfig train",
}
"""Pages of version 0.2's reference that are no more, and the public names on them."""


def tasks() -> dict[str, list[str]]:
    """Return the names on each page: the public ones, then the records that they return."""
    public = {canonical(f"sih.{name}") for task in TASKS.values() for name in task.names}
    shown = {}
    for page_name, task in TASKS.items():
        names = [f"sih.{name}" for name in task.names]
        returned = [record for name in names for record in _returned(name)]
        more = [name for name in dict.fromkeys((*task.records, *returned)) if name not in public]
        shown[page_name] = [*names, *more]
        public.update(more)
    return shown


def pages(docs: Path) -> dict[str, str]:
    """Return the text of every page of the reference, by its place in the site."""
    found, used = tasks(), uses(docs)
    made = {f"reference/{name}.md": page(name, names, used) for name, names in found.items()}
    return made | {"reference/index.md": contents(found)}


def contents(found: dict[str, list[str]]) -> str:
    """Return the page that lists all others."""
    lines = [
        "# Python by task",
        "",
        "Every public name, from its docstring; `import sih` has them all. Arguments, results"
        " and an example are on the page of each. The [commands](commands.md) of the command"
        " line have a page of their own.",
    ]
    for name, task in TASKS.items():
        public = [f"`{each}`" for each in found[name] if each.count(".") == 1]
        linked = ", ".join(f"[{each}][{each.strip('`')}]" for each in public)
        lines += ["", f"## [{task.title}]({name}.md)", "", task.about, "", linked]
    return "\n".join(lines) + "\n"


def page(page_name: str, names: list[str], used: dict[str, list[tuple[str, str]]]) -> str:
    """Return a page: what it is for, a table of its names, and each name with where it is used."""
    task = TASKS[page_name]
    rows = [f"| [`{_short(name)}`][{name}] | {_first_sentence(name)} |" for name in names]
    parts = [f"# {task.title}", task.about, "\n".join(["| name | |", "|---|---|", *rows])]
    for name in names:
        parts.append(f"::: {name}")
        if used.get(name):
            links = ", ".join(f"[{title}](../{place})" for title, place in used[name])
            parts.append(f"*Used in:* {links}.")
    return "\n\n".join(parts) + "\n"


def _short(name: str) -> str:
    """Return a public name as users write it, and a record by its own name."""
    return name if name.count(".") == 1 else name.rpartition(".")[2]


def uses(docs: Path) -> dict[str, list[tuple[str, str]]]:
    """Return, for each public name, the tutorials and how-tos that call it: titles and places."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(docs.glob("tutorials/*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
        _note(found, code, f"tutorial {title}", f"tutorials/{path.stem}.md")
    for path in sorted(docs.glob("how-to/*.md")):
        text = path.read_text()
        code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S))
        title = text.splitlines()[0].removeprefix("# How to ")
        _note(found, code, f"how to {title}", f"how-to/{path.name}")
    return found


def _note(found: dict[str, list[tuple[str, str]]], code: str, title: str, place: str) -> None:
    for name in sorted(set(re.findall(r"\bsih\.\w+", code))):
        found.setdefault(name, []).append((title, place))


def old_pages() -> dict[str, str]:
    """Return the HTML of pages that once were, by file name: old links find where each name is."""
    page_of = {name: page_name for page_name, names in tasks().items() for name in names}
    made = {}
    for old, names in MOVED.items():
        links = [
            f'<p><a id="sih.{name}" href="{page_of[f"sih.{name}"]}.html#sih.{name}">'
            f"sih.{name}</a></p>"
            for name in names.split()
        ]
        made[f"{old}.html"] = moved(old, "\n".join(links))
    return made


def moved(title: str, links: str) -> str:
    """Return a page that says that another has moved, with links to what was on it."""
    robots = '<meta name="robots" content="noindex">'
    head = f'<meta charset="utf-8"><title>{title}: moved</title>{robots}'
    body = f"<p>This page has moved:</p>\n{links}"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def known(found: dict[str, list[str]]) -> dict[str, str]:
    """Return, for the path at which a name is defined, the name under which the reference has it."""
    return {canonical(name): name for names in found.values() for name in names}


def canonical(name: str) -> str:
    """Return the path at which a name is defined.

    >>> canonical("sih.Task")
    'sih.task.lags.Task'
    """
    value = pkgutil.resolve_name(name)
    if inspect.ismodule(value):
        return value.__name__
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return name


def _first_sentence(name: str) -> str:
    text = " ".join((inspect.getdoc(pkgutil.resolve_name(name)) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s(?=[A-Z])", text)[0].replace("|", r"\|")


def _returned(name: str) -> Iterator[str]:
    value = pkgutil.resolve_name(name)
    if inspect.isfunction(value):
        yield from _classes(get_type_hints(inspect.unwrap(value)).get("return"))


def _classes(hint: Any) -> Iterator[str]:
    """Yield the classes of the package in a type, however deep."""
    if inspect.isclass(hint) and hint.__module__.startswith("sih."):
        yield f"{hint.__module__}.{hint.__qualname__}"
    for part in get_args(hint):
        yield from _classes(part)
