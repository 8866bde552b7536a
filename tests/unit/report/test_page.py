"""The report is one file that needs nothing else, says what was judged, and can be read by everyone."""

from __future__ import annotations

import dataclasses
import json
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sih.claim import claim_histogram
from sih.paper import heads as head_counts
from sih.paper import trained
from sih.report.page import MARKS, Shown, css_class, number, page, span, write_report
from sih.report.paper_errata import ERRATA
from sih.report.subjects import judge_all, statements
from sih.results.cache import Result
from sih.results.figure import shown
from sih.results.html_page import STYLE
from sih.results.judging import BEYOND, VERDICTS, Finding, Measured
from sih.results.pictures import make
from sih.training.runs.run_store import RunStore

SMALL = claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5))
EXPERIMENTS = (
    dataclasses.replace(claim_histogram.EXPERIMENT, config=SMALL),
    dataclasses.replace(head_counts.EXPERIMENT, config=head_counts.HeadCountsConfig(largest=4)),
)


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> list[Shown]:
    out = tmp_path_factory.mktemp("out")
    made = [make(shown(experiment), out, RunStore()) for experiment in EXPERIMENTS]
    nothing = Result(trained.EXPERIMENT, None, absent=("standard-8.9",))
    there = [Shown(one.figure.name, one.figure.caption, one.result, one.png) for one in made]
    return [*there, Shown("trained", "", nothing, None)]


@pytest.fixture
def findings(figures: list[Shown]) -> list[Finding]:
    papers = [one for one in statements().values() if not one.experiment.beyond]
    return judge_all({one.name: one.result for one in figures}, papers)


class Tags(HTMLParser):
    """Every tag with its attributes, and whether tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def test_it_needs_nothing_else(figures: list[Shown], findings: list[Finding]) -> None:
    text = page(figures, findings)
    found = Tags(text)
    assert not re.search(r"https?://|url\(|@import|srcset", text)
    assert not found.named("script") + found.named("link") + found.named("iframe")
    assert all(
        (image["src"] or "").startswith("data:image/png;base64,") for image in found.named("img")
    )
    assert all((link["href"] or "").startswith("#") for link in found.named("a"))


def test_it_can_be_read_by_everyone(figures: list[Shown], findings: list[Finding]) -> None:
    found = Tags(page(figures, findings))
    assert found.named("html")[0]["lang"] == "en"
    assert len(found.named("img")) == 2
    assert all(len(image["alt"] or "") > 20 for image in found.named("img"))
    assert len(found.named("h1")) == 1
    assert all(cell["scope"] == "col" for cell in found.named("th"))
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(link["href"] or "")[1:] for link in found.named("a")} - set(ids) <= {
        f"figure-{one.statement.experiment.name}" for one in findings
    }


def test_every_statement_is_there_with_rule_and_command(
    figures: list[Shown], findings: list[Finding]
) -> None:
    text = page(figures, findings)
    for one in findings:
        before, after = text.split(f'<article id="{one.statement.id}"')
        summary, article = before.rsplit("<summary>", 1)[1], after.split("</article>")[0]
        assert one.statement.command in article
        assert escape(str(one.statement.rule)) in article
        assert f"{MARKS[one.verdict]} {one.verdict}" in summary
    assert set(MARKS) == set(VERDICTS)
    assert "needs standard-8.9, not trained yet" in text
    for erratum in ERRATA:
        assert erratum.test in text


def test_models_are_counted_beside_the_verdict_and_other_numbers_are_not(
    figures: list[Shown], findings: list[Finding]
) -> None:
    of_models = next(one for one in findings if one.statement.models is not None)
    of_none = next(one for one in findings if one.statement.models is None)
    for finding, count in ((of_none, False), (of_models, True)):
        number_that_holds = Measured(finding.statement.rule.limit)
        two = dataclasses.replace(finding, each=(number_that_holds, number_that_holds))
        assert two.count == "2 of 2"
        summary, _ = page(figures, [two]).split("</table>", 1)
        assert ('title="2 of 2 hold"' in summary) == count
    alone = dataclasses.replace(of_models, each=(Measured(of_models.statement.rule.limit),))
    assert "<small></small>" not in page(figures, [alone])
    assert 'title="1 of 1' not in page(figures, [alone])


def test_the_verdicts_come_first_and_each_opens_its_statement_and_its_figure(
    figures: list[Shown], findings: list[Finding]
) -> None:
    text = page(figures, findings)
    table = text[text.index("<table") : text.index("</table>")]
    assert "At the paper's own setting?" in table
    for one in (each for each in findings if each.statement.section != BEYOND):
        assert f'<a href="#{one.statement.id}"' in table
        assert f'<a href="#figure-{one.statement.experiment.name}">' in table
    assert "<details" not in text[: text.index("</table>")]
    for target in ('<article id="claim-1"', '<figure id="figure-claim_histogram"'):
        before = text[: text.index(target)]  # what is followed to inside of one opens it
        assert before.count("<details") == before.count("</details>") + 1


def test_figures_with_one_caption_have_it_once(figures: list[Shown]) -> None:
    one = next(each for each in figures if each.png)
    caption = "All of these. With a second sentence."
    several = [dataclasses.replace(one, name=f"maps_{n}", caption=caption) for n in range(11)]
    text = page([*several, one], [])
    assert text.count("With a second sentence.") == 1
    assert "<b>maps: 11 figures</b>" in text
    assert all(f'id="figure-maps_{n}"' in text for n in range(11))


def test_files_are_whole_and_the_json_is_plain(
    figures: list[Shown], findings: list[Finding], tmp_path: Path
) -> None:
    paths = write_report(tmp_path, figures, findings)
    assert [path.name for path in paths] == ["report.html", "report.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "report.html",
        "report.json",
    ]  # nothing half-written
    listed = json.loads(
        (tmp_path / "report.json").read_text(), parse_constant=lambda word: pytest.fail(word)
    )
    assert len(listed) == len(findings)
    for one in listed:
        assert {
            "id",
            "section",
            "statement",
            "measured",
            "interval",
            "verdict",
            "command",
        } <= one.keys()
        assert one["verdict"] in VERDICTS
        assert (
            one["interval"] is None or one["interval"][0] <= one["measured"] <= one["interval"][1]
        )
    first = (tmp_path / "report.html").read_bytes()
    write_report(tmp_path, figures, findings)
    assert (tmp_path / "report.html").read_bytes() == first


def test_it_prints_on_a4_without_breaking_figures() -> None:
    style = STYLE.read_text()
    printed = style.split("@media print")[1]
    assert "size: A4" in style
    assert re.search(r"figure, \.statement, tr \{ break-inside: avoid; \}", printed)


def test_colours_of_verdicts_can_be_told_from_the_paper_in_light_and_dark() -> None:
    style = STYLE.read_text()
    light, dark = (
        {**dict(re.findall(r"--(\w+): (#\w+)", part)), "paper": paper}
        for part, paper in zip(
            re.findall(r":root \{(.*?)\}", style, re.S), ("#ffffff", "#161615"), strict=True
        )
    )
    for verdict in VERDICTS:
        found = re.search(rf"\.{css_class(verdict)} {{ color: var\(--(\w+)\); }}", style)
        assert found
        for colours in (light, dark):
            low, high = sorted(_luminance(colours[name][1:]) for name in (found[1], "paper"))
            assert (high + 0.05) / (low + 0.05) > 7  # WCAG AAA


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_numbers() -> None:
    assert [number(x) for x in (0, 17, 4095, 0.5, 1.23456, 33.333, 1e-7, -0.9)] == [
        "0", "17", "4,095", "0.500", "1.235", "33.33", "1.0e-07", "-0.900",
    ]  # fmt: skip
    assert span((1.0, 2.5)) == " [1, 2.500]"
    assert span((0.5, 0.5 + 2e-9)) == " ± 1e-09"
    assert span(None) == ""
