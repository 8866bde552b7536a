"""The pages of the reference: every public name, by room, what the functions return, and what the documents name."""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import sih

ORDER = ("task", "predictors", "models", "circuits", "heads", "training", "attention", "claim")
"""The rooms as a reader meets them; what goes past the paper comes after these."""
BESIDES = {
    "models": ("sih.models.base.Model", "sih.models.sites.Trace"),
    "circuits": (
        "sih.circuits.any_circuit.AnyCircuit",
        "sih.circuits.circuit.Circuit",
        "sih.circuits.paper.PaperOptions",
        "sih.circuits.two_lags.TwoLagOptions",
        "sih.circuits.bayes.BayesOptions",
        "sih.circuits.looking.LookingOptions",
    ),
    "any_parents": (
        "sih.beyond.any_parents.targets.PaperParentsOptions",
        "sih.beyond.any_parents.targets.BayesParentsOptions",
    ),
}
"""What else belongs on a room's page."""
MOVED = {
    "analysis": "Diagnosis ablate counterfactual_pairs diagnose edge_scores evidence_flow known_circuit "
    "load_circuits patch",
    "beyond": "formation",
    "evidence": "lag_log_likelihood lag_posterior mixture",
    "export": "from_transformer_lens to_transformer_lens",
    "inference": "Inference infer permutation_test",
    "markov": "as_transition_matrix load_transition_matrix random_doubly_stochastic random_near_periodic "
    "random_sparse random_transition_matrix random_uniform stationary_distribution",
    "metrics": "kl_to_truth lag_accuracy mean_kl",
    "parents_circuits": "construct_parents",
    "runs": "Run evaluate load open_run",
    "theory": "claim_expectations claim_status",
    "tracker": "LagTracker",
}
"""Pages of version 0.2's reference that are no more, and the public names that stood there."""
NAMED = re.compile(r"\bsih(?:\.\w+)+")


def rooms() -> dict[str, list[str]]:
    """Give for each room its public names, as users write them, and then the records that its functions return."""
    found: dict[str, list[str]] = {}
    for name in sih.__all__:
        found.setdefault(_room(getattr(sih, name)), []).append(f"sih.{name}")
    order = [*(room for room in ORDER if room in found), *sorted(found.keys() - set(ORDER))]
    public = {path for names in found.values() for path in map(canonical, names)}
    pages = {}
    for room in order:
        more = [
            *BESIDES.get(room, ()),
            *(record for name in found[room] for record in _returned(name)),
        ]
        pages[room] = sorted(found[room]) + [
            name for name in dict.fromkeys(more) if name not in public
        ]
        public.update(pages[room])
    return pages


def pages(docs: Path) -> dict[str, str]:
    """Write every page of the reference, by its place in the site."""
    found = rooms()
    made = {f"reference/{room}.md": page(room, names) for room, names in found.items()}
    listed = {name for names in found.values() for name in names}
    made["reference/behind.md"] = behind([name for name in names_in(docs) if name not in listed])
    return made | {"reference/index.md": contents(found)}


def contents(found: dict[str, list[str]]) -> str:
    """Write the page that lists all others."""
    lines = [
        "# Reference",
        "",
        "Every public name, by room, from its docstring. `import sih` has them all.",
        "",
    ]
    for room, names in found.items():
        lines.append(
            f"- [{_title(room)}]({room}.md): " + ", ".join(f"[`{name}`][{name}]" for name in names)
        )
    lines.append("- [Commands](commands.md): `sih` on the command line.")
    lines.append("- [Behind the paper map](behind.md): what the documents name besides.")
    return "\n".join(lines) + "\n"


def page(room: str, names: list[str]) -> str:
    """Write a room's page: what the room is for, and each name for mkdocstrings to fill in."""
    about = inspect.getdoc(pkgutil.resolve_name(f"sih.{_package(room)}")) or ""
    table = [
        "| name | |",
        "|---|---|",
        *(f"| [`{name}`][{name}] | {_first_sentence(name)} |" for name in names),
    ]
    return (
        "\n\n".join(
            [f"# {_title(room)}", about, "\n".join(table), *(f"::: {name}" for name in names)]
        )
        + "\n"
    )


def behind(named: list[str]) -> str:
    """Write the page of what documents name beyond the public names: functions whole, modules by their words."""
    about = "What the documents, the [paper map](../paper_map.md) above all, name beyond the public names."
    parts = ["# Behind the paper map", f"{about} Not settled: these may move."]
    for name in named:
        alone = inspect.ismodule(pkgutil.resolve_name(name))
        parts.append(f"::: {name}" + ("\n    options:\n      members: false" if alone else ""))
    return "\n\n".join(parts) + "\n"


def old_pages() -> dict[str, str]:
    """Return the HTML of pages that once were, by file name: old links find where each name is now."""
    page_of = {name: room for room, names in rooms().items() for name in names}
    made = {}
    for old, names in MOVED.items():
        links = [
            f'<p><a id="sih.{name}" href="{page_of[f"sih.{name}"]}.html#sih.{name}">sih.{name}</a></p>'
            for name in names.split()
        ]
        head = f'<meta charset="utf-8"><title>{old}: moved</title><meta name="robots" content="noindex">'
        body = "\n".join(["<p>This page has moved:</p>", *links])
        made[f"{old}.html"] = (
            f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'
        )
    return made


def known(found: dict[str, list[str]], named: list[str]) -> dict[str, str]:
    """Say for the path at which a name is defined under which name the reference has it."""
    public = {canonical(name): name for names in found.values() for name in names}
    return {name: name for name in named} | public


def names_in(folder: Path) -> list[str]:
    """List the names like `sih.room.module.name`, between backticks in the documents, that are no public ones'."""
    text = "\n".join(path.read_text() for path in sorted(folder.rglob("*.md")))
    quoted = re.findall(r"`([^`\n]+)`", text)
    sources = re.findall(r"\.\./src/(sih/[\w/]+)\.py", text)
    named = {name for words in quoted for name in NAMED.findall(words)}
    named |= {name.replace("/", ".") for name in sources}
    public = {canonical(f"sih.{name}") for name in sih.__all__}
    found = {}
    for name in sorted(named):
        try:
            found[name] = canonical(name)
        except (AttributeError, ImportError):
            continue  # a file's name, or what was there once
    return sorted({path for path in found.values() if path not in public and path.count(".") > 1})


def canonical(name: str) -> str:
    """Give the path at which a name is defined.

    >>> canonical("sih.Task")
    'sih.task.lags.Task'
    """
    value = pkgutil.resolve_name(name)
    if inspect.ismodule(value):
        return value.__name__
    if inspect.isclass(value) or inspect.isfunction(value):
        return f"{value.__module__}.{value.__qualname__}"
    return name


def _room(value: Any) -> str:
    """Return the folder that a name is defined in, or the subject's past the paper."""
    _, room, *inner = str(value.__module__).split(".")
    return inner[0] if room == "beyond" else room


def _package(room: str) -> str:
    return room if room in ORDER else f"beyond.{room}"


def _title(room: str) -> str:
    return room.replace("_", " ").capitalize()


def _first_sentence(name: str) -> str:
    text = " ".join((inspect.getdoc(pkgutil.resolve_name(name)) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s(?=[A-Z])", text)[0].replace("|", r"\|")


def _returned(name: str) -> Iterator[str]:
    value = pkgutil.resolve_name(name)
    if inspect.isfunction(value):
        yield from _classes(get_type_hints(inspect.unwrap(value)).get("return"))


def _classes(hint: Any) -> Iterator[str]:
    """List our classes in a type, however deep."""
    if inspect.isclass(hint) and hint.__module__.startswith("sih."):
        yield f"{hint.__module__}.{hint.__qualname__}"
    for part in get_args(hint):
        yield from _classes(part)
