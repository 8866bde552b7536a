"""The report as one HTML file that needs nothing else, and the same statements as JSON.

No script, no address is loaded (the page forbids it to itself), figures are inside; it prints on A4.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from sih.artifacts.keep import Kept
from sih.files import atomic_write
from sih.report.paper_errata import ERRATA
from sih.report.rules import VERDICTS, Interval, Statement, Verdict

HTML, JSON = "report.html", "report.json"
MARKS: dict[Verdict, str] = {"holds": "✓", "holds with a remark": "≈", "does not hold": "✗", "not measured": "–"}
BEYOND = "beyond the paper"
FULL = 1350
"""Pixels of a figure as wide as the page; narrower ones are shown narrower."""


def write_report(
    out: Path, made: Mapping[str, Kept[Any]], statements: list[Statement], drawn: Mapping[str, tuple[Path, ...]]
) -> list[Path]:
    """OUT/report.html and OUT/report.json, each whole or not at all."""
    listed = json.dumps([one.to_dict() for one in statements], indent=1, ensure_ascii=False, allow_nan=False)
    contents = {out / HTML: page(made, statements, drawn), out / JSON: listed + "\n"}
    for path, content in contents.items():
        with atomic_write(path) as file:
            file.write(content.encode())
    return list(contents)


def page(made: Mapping[str, Kept[Any]], statements: list[Statement], drawn: Mapping[str, tuple[Path, ...]]) -> str:
    """The whole HTML document; `drawn` are the files of each figure."""
    papers = [one for one in statements if one.section != BEYOND]
    ours = [one for one in statements if one.section == BEYOND]
    style = resources.files("sih.report").joinpath("page.css").read_text()
    body = [
        "<header><h1>Selective Induction Heads: what held</h1>",
        "<p>Each statement of the paper (ICLR 2025), in our words and by section, with the number that was measured, "
        "its interval, the rule by which it was judged and the command that makes it again.</p>",
        "<p>Intervals are two standard errors either way: over matrices for circuits, over sequences for trained "
        "models; where several models are asked, the range over them; for Claim 1 a proved bound on the error. A "
        "number without one is exact, or of one draw.</p>",
        f"<p>{_versions()} Verdicts on the paper's statements: {_counts(papers)}.</p></header>",
        _contents(),
        _section("summary", "Summary", _summary(statements)),
        _section("statements", "Statements of the paper", "".join(map(_statement, papers))),
        _section("added", "What is added", ADDED + "".join(map(_statement, ours))),
        _section("figures", "Figures", "".join(_figure(one, drawn.get(name, ())) for name, one in made.items())),
        _section("errata", "Errata", _errata()),
        _section("models", "Trained models", _models(made)),
        _section("again", "Making it again", AGAIN),
    ]
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src '
        "'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Selective Induction Heads: what held</title><style>{style}</style></head><body>\n"
    )
    return head + "\n".join(body) + "\n</body></html>\n"


ADDED = (
    "<p>Where the paper leaves a question open, or more can be had, this project goes on: Claim 1 computed exactly "
    "instead of sampled, and attacked by descent; the exponents of the error rates; the least number of heads for any "
    "set of lags, with a proof for each; a circuit that is Bayes-optimal; certificates that compare every layer of a "
    "circuit with its closed form; recipes that find the circuit by gradient descent in minutes.</p>"
)
AGAIN = (
    "<p><code>sih reproduce --out out</code> makes this report and every figure; what has not changed is not made "
    "again. <code>sih reproduce --train --out out</code> first trains the models that are missing. "
    "<code>sih figure NAME --out out</code> makes one figure and prints the numbers that rest on it; beside each "
    "figure (PDF, SVG, PNG) its data is in <code>data/NAME.json</code>. The statements above are also in "
    "<code>report.json</code>.</p>"
)


def number(value: float) -> str:
    """
    >>> number(1234), number(0.031042), number(3.3e-13)
    ('1,234', '0.031', '3.3e-13')
    """
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"


def span(interval: Interval | None) -> str:
    """
    >>> span((0.9, 1.2)), span((1.0, 1.0 + 1e-9))
    (' [0.900, 1.200]', ' ± 5e-10')
    """
    if interval is None:
        return ""
    low, high = interval
    if high - low < 1e-3 * abs(high):
        return f" ± {(high - low) / 2:.0e}"
    return f" [{number(low)}, {number(high)}]"


def _section(id: str, title: str, content: str) -> str:
    return f'<section id="{id}"><h2>{title}</h2>{content}</section>'


def _contents() -> str:
    names = ("summary", "statements", "added", "figures", "errata", "models", "again")
    titles = ("Summary", "Statements", "What is added", "Figures", "Errata", "Models", "Making it again")
    links = (f'<a href="#{name}">{title}</a>' for name, title in zip(names, titles, strict=True))
    return f'<nav aria-label="Contents">{" · ".join(links)}</nav>'


def _versions() -> str:
    import torch

    return f"Made by sih {metadata.version('selective-induction-heads')}, torch {escape(torch.__version__)}."


def _counts(statements: list[Statement]) -> str:
    counts = Counter(one.verdict for one in statements)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


def _summary(statements: list[Statement]) -> str:
    rows = [
        [
            escape(one.section),
            f'<a href="#{one.id}">{escape(one.statement)}</a>',
            _measured(one) + (f"<br><small>{escape(one.unit)}</small>" if one.measured is not None else ""),
            _badge(one.verdict),
        ]
        for one in statements
    ]
    return _table(["Where", "Statement", "Measured", "Verdict"], rows, "summary")


def _statement(one: Statement) -> str:
    parts = ""
    if one.parts:
        rows = [[escape(part.label), number(part.value) + span(part.interval)] for part in one.parts]
        parts = _table(["of", "measured"], rows, "parts")
    lines = {
        "Measured": f"{_measured(one)}: {escape(one.quantity)}" + (f" ({escape(one.where)})" if one.where else ""),
        "Rule": escape(one.rule),
        "Remark": escape(one.remark),
        "Models": escape(", ".join(one.models)),
        "Command": f"<code>{escape(one.command)}</code>",
        "Figure": f'<a href="#figure-{escape(one.figure)}">{escape(one.figure)}</a>',
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines.items() if text)
    return (
        f'<article class="statement" id="{one.id}">'
        f"<h3>{escape(one.section)}: {escape(one.id)} {_badge(one.verdict)}</h3>"
        f"<p>{escape(one.statement)}</p><dl>{listed}</dl>{parts}</article>"
    )


def _measured(one: Statement) -> str:
    return "–" if one.measured is None else f"{number(one.measured)}{span(one.interval)}"


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{MARKS[verdict]} {verdict}</span>'


def _figure(made: Kept[Any], files: tuple[Path, ...]) -> str:
    name = made.experiment.name
    if made.missing:
        words = f"<b>{escape(name)}</b>: not made, it {escape(made.missing)}."
        return f'<figure id="figure-{escape(name)}"><figcaption>{words}</figcaption></figure>'
    png = next(path for path in files if path.suffix == ".png")
    caption = made.experiment.caption
    alt = f"{name}: {caption.split('. ')[0].rstrip('.')}."
    content = png.read_bytes()
    picture = base64.b64encode(content).decode()
    part = min(1.0, int.from_bytes(content[16:20]) / FULL)  # a PNG's width is there
    read = (
        f" Models: {', '.join(f'{model} ({source})' for model, source in made.models.items())}." if made.models else ""
    )
    absent = getattr(made.data, "missing", [])
    lacking = f" Left out: {'; '.join(absent)}." if absent else ""
    return (
        f'<figure id="figure-{escape(name)}"><img style="width:{part:.0%}" '
        f'src="data:image/png;base64,{picture}" alt="{escape(alt)}">'
        f"<figcaption><b>{escape(name)}.</b> {escape(caption + read + lacking)} "
        f"<code>sih figure {escape(name)} --out out</code></figcaption></figure>"
    )


def _errata() -> str:
    rows = [
        [str(one.number), *map(escape, (one.where, one.printed, one.corrected)), f"<code>{escape(one.test)}</code>"]
        for one in ERRATA
    ]
    intro = (
        "<p>What is not quite as printed, each with the test that shows the printed form failing and the corrected one "
        "holding. Positions count from 1; k̂ and k̄ are the largest and the smallest lag.</p>"
    )
    return intro + _table(["#", "Where", "Printed", "Should read", "Test"], rows, "errata")


def _models(made: Mapping[str, Kept[Any]]) -> str:
    """Every model that a figure read, and from where."""
    used = {model: source for one in made.values() for model, source in one.models.items()}
    if not used:
        return "<p>No figure read a trained model.</p>"
    figures = {model: [name for name, one in made.items() if model in one.models] for model in used}
    rows = [
        [
            escape(model),
            escape(used[model]),
            escape(", ".join(figures[model])),
            f"<code>sih runs show {escape(model)}</code>",
        ]
        for model in sorted(used)
    ]
    return _table(["Model", "From", "Read by", "How it was trained"], rows, "models")


def _table(header: list[str], rows: Iterable[list[str]], kind: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
