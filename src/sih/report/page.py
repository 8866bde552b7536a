"""The report as one self-contained HTML page, and the same statements as JSON.

The page has no script, and it loads no address (its own policy forbids that). Figures
are inside; it prints on A4.
"""

import base64
from collections import Counter
from dataclasses import dataclass
from html import escape
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from sih.base.files import atomic_write, write_json
from sih.report.paper_errata import ERRATA
from sih.results.cache import Result
from sih.results.html_page import document, html_table
from sih.results.judging import BEYOND, VERDICTS, Finding, Interval, Verdict
from sih.results.models import PAPER_LENGTH

HTML, JSON = "report.html", "report.json"
MARKS: dict[Verdict, str] = dict(zip(VERDICTS, "✓≈…✗○–", strict=True))
FULL_WIDTH = 1350
"""Pixels of a figure as wide as the page; smaller ones are shown narrower."""


@dataclass(frozen=True, eq=False)
class Shown:
    """A figure on the page, without a picture if there is no data."""

    name: str
    caption: str
    result: Result[Any]
    png: Path | None


def write_report(out: Path, figures: list[Shown], findings: list[Finding]) -> list[Path]:
    """Write OUT/report.html and OUT/report.json, each whole or not at all."""
    with atomic_write(out / HTML) as file:
        file.write(page(figures, findings).encode())
    write_json(out / JSON, [one.to_dict() for one in findings], indent=1, allow_nan=False)
    return [out / HTML, out / JSON]


def page(figures: list[Shown], findings: list[Finding]) -> str:
    """Return the whole HTML document."""
    papers = [one for one in findings if one.statement.section != BEYOND]
    ours = [one for one in findings if one.statement.section == BEYOND]
    counts = Counter(one.verdict for one in papers)
    verdicts = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
    versions = (
        f"sih {metadata.version('selective-induction-heads')}, torch {escape(torch.__version__)}"
    )
    sections = {
        "verdicts": ("Verdicts on the paper's statements", _summary(papers)),
        "added": ("Verdicts on what is added", ADDED + _summary(ours) if ours else ADDED),
        "reading": ("How to read them", READING),
        "statements": ("Statements, with rules and numbers", "".join(map(_finding, findings))),
        "figures": ("Figures", _figures(figures)),
        "errata": ("Errata", _errata()),
        "models": ("Trained models", _models(figures)),
        "again": ("Making it again", AGAIN),
    }
    links = " · ".join(f'<a href="#{name}">{title}</a>' for name, (title, _) in sections.items())
    body = [
        "<header><h1>Selective Induction Heads: what held</h1>",
        "<p>Every statement of the paper (ICLR 2025) that this project measures, with its "
        f"verdict: {verdicts}. "
        "A statement opens its rule and its numbers, a verdict its figure. Made by "
        f"{versions}.</p></header>",
        *(_section(id, title, text) for id, (title, text) in sections.items()),
        f'<nav aria-label="Contents">{links}</nav>',
    ]
    return document("Selective Induction Heads: what held", body)


FOLDED = ("added", "errata", "models", "again")
"""Sections that are closed at first."""


def _section(id: str, title: str, text: str) -> str:
    """Return a section. A closed section opens when a link leads into it."""
    if id in FOLDED:
        title = f"<details><summary><h2>{title}</h2></summary>"
        return f'<section>{title}<div id="{id}">{text}</div></details></section>'
    return f'<section id="{id}"><h2>{title}</h2>{text}</section>'


READING = (
    "<p><b>Measured</b> is the number that decides, with two standard errors either way: over "
    "matrices for circuits, "
    "over sequences for trained models. For a median it is the range over models, for a share of "
    "runs Wilson's "
    "interval, for Claim 1 a proved bound on the error. A number without an interval is exact, or "
    "of one draw.</p>"
    "<p><b>At the paper's own setting?</b> A model is, if it is trained as in the paper on "
    "sequences of length "
    f"{PAPER_LENGTH}. Only such models decide what the paper states about training. Where there "
    "is none, the number "
    "of the others is shown, and the verdict is <i>not measured at the paper's length</i>. Every "
    "shipped model that a "
    "statement is about is judged alone: &quot;3 of 8&quot; counts those that hold.</p>"
)
ADDED = (
    "<p>Where the paper leaves a question open, or more can be had, this project adds: Claim 1 "
    "computed exactly "
    "instead of sampled, and attacked by descent; the exponents of the error rates; the least "
    "number of heads for any "
    "set of lags, with a proof for each; a circuit that is Bayes-optimal; certificates that "
    "compare every layer of a "
    "circuit with its closed form; recipes that find the circuit by gradient descent in "
    "minutes.</p>"
)
AGAIN = (
    "<p><code>sih reproduce --out out</code> makes this report and every figure; what has not "
    "changed is not made "
    "again. <code>sih reproduce --train --out out</code> first trains the models that are missing. "
    "<code>sih figure NAME --out out</code> makes one figure and prints the numbers that rest on "
    "it; beside each "
    "figure (PDF, SVG, PNG) its data is in <code>data/NAME.json</code> and <code>.npz</code>. "
    "The statements above are also in "
    "<code>report.json</code>.</p>"
)


def number(value: float) -> str:
    """Return a number with as many digits as a reader needs.

    >>> number(1234), number(0.031042), number(3.3e-13)
    ('1,234', '0.031', '3.3e-13')
    """
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}"
    return (
        f"{value:.1e}"
        if abs(value) < 1e-3
        else f"{value:.3f}"
        if abs(value) < 10
        else f"{value:.4g}"
    )


def span(interval: Interval | None) -> str:
    """Return an interval by its ends, or as a number with ± if it is narrow.

    >>> span((0.9, 1.2)), span((1.0, 1.0 + 1e-9))
    (' [0.900, 1.200]', ' ± 5e-10')
    """
    if interval is None:
        return ""
    low, high = interval
    if high - low < 1e-3 * abs(high):
        return f" ± {(high - low) / 2:.0e}"
    return f" [{number(low)}, {number(high)}]"


def _summary(findings: list[Finding]) -> str:
    """Return the table of verdicts: one line per statement, which links to the
    statement and, from the verdict, to its figure.
    """
    rows = []
    for one in findings:
        asked = one.statement
        words = escape(asked.text)
        link = f'<a href="#{asked.id}" title="{escape(asked.text)}">{words}</a>'
        unit = f" <small>{escape(asked.unit)}</small>" if one.measured else ""
        count = f"{escape(one.count)} hold" if one.count and asked.models else ""
        badge = f'<a href="#figure-{escape(asked.experiment.name)}">{_badge(one.verdict)}</a>'
        setting = (
            f'<span title="{count}">{escape(one.paper_setting or "nothing is trained")}</span>'
        )
        short = escape(asked.section.split(";")[0].split(",")[0])
        where = f'<span title="{escape(asked.section)}">{short}</span>'
        rows.append([where, link, _measured(one) + unit, setting, badge])
    return html_table(
        ["Where", "Statement", "Measured", "At the paper's own setting?", "Verdict"],
        rows,
        "summary",
    )


def _finding(one: Finding) -> str:
    """Return a statement, closed to one line."""
    asked = one.statement
    figure = escape(asked.experiment.name)
    said = f" ({escape(one.measured.label)})" if one.measured and one.measured.label else ""
    lines = {
        "Measured": f"{_measured(one)}: {escape(asked.quantity)}{said}",
        "Rule": escape(str(asked.rule)),
        "Hold": escape(one.count),
        "Remark": escape(one.remark),
        "About": escape(str(asked.models or "")),
        "At the paper's setting": escape(one.paper_setting),
        "Command": f"<code>{escape(asked.command)}</code>",
        "Figure": f'<a href="#figure-{figure}">{figure}</a>',
    }
    listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in lines.items() if text)
    heading = f"<h3>{escape(asked.section)}: {escape(asked.id)} {_badge(one.verdict)}</h3>"
    return (
        f'<details class="statement"><summary>{heading}</summary><article id="{asked.id}">'
        f"<p>{escape(asked.text)}</p><dl>{listed}</dl>{_parts(one)}</article></details>"
    )


def _parts(one: Finding) -> str:
    """Return the table of all judged numbers, with the parts from which each was
    chosen.
    """
    if len(one.each) < 2 and not any(each.parts for each in one.each):
        return ""
    rows = []
    for part, verdict in zip(one.each, one.verdicts, strict=True):
        windows = "; ".join(f"{each.label}: {number(each.value)}" for each in part.parts)
        said = f"{verdict} ({part.unsettled})" if part.unsettled else verdict
        rows.append(
            [*map(escape, (part.label, number(part.value) + span(part.interval), windows, said))]
        )
    if not any(part.parts for part in one.each):
        return html_table(
            ["of", "measured", "alone"], [[row[0], row[1], row[3]] for row in rows], "parts"
        )
    return html_table(["of", "measured", "all of it", "alone"], rows, "parts")


def _measured(one: Finding) -> str:
    return (
        "–"
        if one.measured is None
        else f"{number(one.measured.value)}{span(one.measured.interval)}"
    )


def _badge(verdict: Verdict) -> str:
    return f'<span class="verdict {css_class(verdict)}">{MARKS[verdict]} {verdict}</span>'


def css_class(verdict: Verdict) -> str:
    """Return a verdict's class in the style sheet.

    >>> css_class("not measured at the paper's length")
    'not-measured-at-the-papers-length'
    """
    return verdict.replace(" ", "-").replace("'", "")


def _figures(figures: list[Shown]) -> str:
    """Return all figures, closed to one line each. Figures with one caption share it."""
    groups: dict[str, list[Shown]] = {}
    for each in figures:
        groups.setdefault(each.caption, []).append(each)
    return "".join(map(_group, groups.values()))


def _group(figures: list[Shown]) -> str:
    """Return the figures of one caption: a single one with it, several below it."""
    caption = figures[0].caption
    if len(figures) == 1:
        return _figure(figures[0], caption)
    names = f"{figures[0].name.split('_')[0]}: {len(figures)} figures"
    inside = "".join(_figure(each, "") for each in figures)
    return (
        f'<details class="group"><summary><b>{escape(names)}</b> {escape(_first(caption))}</summary>'
        f'<p class="caption">{escape(caption)}</p>{inside}</details>'
    )


def _first(caption: str) -> str:
    """Return the first sentence of a caption."""
    return f"{caption.split('. ')[0].rstrip('.')}." if caption else ""


def _figure(figure: Shown, caption: str) -> str:
    """Return a figure, closed to one line, with a caption unless its group has one."""
    name, result = escape(figure.name), figure.result
    if figure.png is None:
        words = f"<b>{name}</b>: not made, it {escape(result.missing)}."
        return f'<figure id="figure-{name}"><figcaption>{words}</figcaption></figure>'
    content = figure.png.read_bytes()
    picture = base64.b64encode(content).decode()
    part = min(1.0, int.from_bytes(content[16:20]) / FULL_WIDTH)  # a PNG's width is there
    models = ", ".join(f"{model} ({source})" for model, source in result.models.items())
    read = f" Models: {models}." if models else ""
    lacking = f" Left out: {'; '.join(result.absent)}." if result.absent else ""
    summary = f"<summary><b>{name}</b> {escape(_first(caption))}</summary>"
    return (
        f'<details class="figure">{summary}<figure id="figure-{name}"><img style="width:{part:.0%}" '
        f'src="data:image/png;base64,{picture}" alt="{escape(f"{figure.name}: {_first(figure.caption)}")}">'
        f"<figcaption><b>{name}.</b> {escape((caption + read + lacking).strip())} "
        f"<code>sih figure {name} --out out</code></figcaption></figure></details>"
    )


def _errata() -> str:
    rows = [
        [
            str(one.number),
            *map(escape, (one.where, one.printed, one.corrected)),
            f"<code>{escape(one.test)}</code>",
        ]
        for one in ERRATA
    ]
    intro = (
        "<p>Places where the printed paper is not quite right, each with the test that shows the "
        "printed form failing and the corrected one "
        "holding. Positions count from 1; k̂ and k̄ are the largest and the smallest lag.</p>"
    )
    return intro + html_table(["#", "Where", "Printed", "Should read", "Test"], rows, "errata")


def _models(figures: list[Shown]) -> str:
    """Return the list of models that the figures used, with their origins."""
    used = {model: source for one in figures for model, source in one.result.models.items()}
    if not used:
        return "<p>No figure read a trained model.</p>"
    rows = []
    for model in sorted(used):
        readers = ", ".join(one.name for one in figures if model in one.result.models)
        rows.append(
            [
                *map(escape, (model, used[model], readers)),
                f"<code>sih runs show {escape(model)}</code>",
            ]
        )
    return html_table(["Model", "From", "Read by", "How it was trained"], rows, "models")
