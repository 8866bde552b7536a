"""The documentation's site, as far as it can be checked without building it: `make docs` builds and checks the rest."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import sih
from website import built, links, reference, repository

ROOT = Path(__file__).parents[2]


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    pages = [name for names in reference.tasks().values() for name in names]
    assert sorted(name for name in pages if name.count(".") == 1) == [
        f"sih.{name}" for name in sih.__all__
    ]
    assert len(set(pages)) == len(pages)


@pytest.mark.parametrize("name", sih.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    """A first sentence of its own, and words on every public method of a class of ours."""
    value = getattr(sih, name)
    said = inspect.getdoc(value) or ""
    inherited = [base.__doc__ for base in value.__mro__[1:]] if inspect.isclass(value) else []
    assert said, f"sih.{name} has no docstring"
    assert value.__doc__ not in inherited
    first = " ".join(said.split("\n\n")[0].split())
    assert first[0].isupper(), first
    assert first.endswith((".", ":", "?")) or "." in first, first


def test_every_page_is_in_the_menu_once() -> None:
    shown = list(repository.flat(repository.menu(ROOT / "docs", list(reference.tasks()))))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert there <= set(shown)
    assert len(set(shown)) == len(shown)


def test_old_pages_lead_to_where_their_names_are() -> None:
    tasks = reference.tasks()
    made = reference.old_pages()
    assert not {name.removesuffix(".html") for name in made} & tasks.keys()
    for html in made.values():
        found = re.findall(r'id="(sih\.\w+)" href="(\w+)\.html#(sih\.\w+)"', html)
        assert found
        for old, page, new in found:
            assert old == new in tasks[page]
    for old, new in repository.MOVED.items():
        assert not (ROOT / "docs" / f"{old}.md").exists()
        assert (ROOT / "docs" / f"{new}.md").exists()


def test_the_paper_map_leads_into_the_reference() -> None:
    known = reference.known(reference.tasks())
    text = links.linked_names((ROOT / "docs" / "paper_map.md").read_text(), known)
    assert "[`sih.predictors.predictors.bma`][sih.bma]" in text
    assert text.count("][sih.") >= 15


def test_a_name_says_which_tutorials_and_how_tos_use_it() -> None:
    places = [place for _, place in reference.uses(ROOT / "docs")["sih.diagnose"]]
    assert "how-to/diagnose-a-model.md" in places
    assert "tutorials/05_your_own_model.md" in places
    assert "](../how-to/diagnose-a-model.md)" in reference.pages(ROOT / "docs")["reference/read.md"]


@pytest.mark.parametrize(
    ("text", "source", "page", "expected"),
    [
        ("[a](docs/b.md#c)", "README.md", "index.md", "[a](b.md#c)"),
        ("![a](docs/img/b.png)", "README.md", "index.md", "![a](img/b.png)"),
        ("[a](../CHANGELOG.md)", "docs/b.md", "b.md", "[a](changelog.md)"),
        ("[a](../b.md)", "docs/tutorials/index.md", "tutorials/index.md", "[a](../b.md)"),
        ("[a](b.ipynb)", "docs/tutorials/index.md", "tutorials/index.md", "[a](b.md)"),
        ("[a](../examples/tools/b.py)", "docs/c.md", "c.md", "[a](examples/tools/b.py)"),
        ("[a](../src/sih/claim/exact.py)", "docs/c.md", "c.md", "a"),
        ("[a](CITATION.cff)", "README.md", "index.md", "a"),
        ("[a](https://b.org)", "README.md", "index.md", "[a](https://b.org)"),
        ("```\n[a](docs/b.md)\n```", "README.md", "index.md", "```\n[a](docs/b.md)\n```"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(
    text: str, source: str, page: str, expected: str
) -> None:
    assert links.site_links(text, source, page) == expected


def test_names_are_linked_outside_code_and_headings_alone() -> None:
    known = {"sih.task.lags.Task": "sih.Task"}
    text = "# `sih.Task`\n\n`sih.Task(P)`, `sih.nothing`, [`sih.Task`](a)\n\n```\n`sih.Task`\n```"
    assert links.linked_names(text, known).count("][sih.Task]") == 1


def _site(folder: Path, body: str) -> list[str]:
    reference_page = folder / "reference" / "a.html"
    reference_page.parent.mkdir(parents=True)
    reference_page.write_text('<h2 id="sih.here">here</h2>')
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    return [said.replace(f"{folder.resolve()}/", "") for said in built.complaints(folder, ["here"])]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            '<a href="reference/a.html#sih.here">a</a> <a href="https://b.org">b</a> <math><mi>x</mi></math>',
            None,
        ),
        ('<a href="no.html">a</a>', "index.html: no.html leads nowhere"),
        (
            '<a href="reference/a.html#no">a</a>',
            "index.html: reference/a.html#no has no such anchor",
        ),
        ('<a href="#no">a</a>', "index.html: #no has no such anchor"),
        ('<img src="no.png">', "index.html: no.png leads nowhere"),
        ('<script src="https://b.org/c.js"></script>', "index.html: fetches https://b.org/c.js"),
        ('<link rel="stylesheet" href="//b.org/c.css">', "index.html: fetches //b.org/c.css"),
        (
            "<style>a { src: url('https://b.org/c.woff') }</style>",
            "index.html: fetches https://b.org/c.woff",
        ),
        (r"<p>Where \(x\) is</p>", r"index.html: the formula \(x\) is not drawn"),
        ("<p>Where $x_i$ is</p>", "index.html: the formula $x_i$ is not drawn"),
        ("<pre>echo $x $y</pre>", None),
    ],
)
def test_what_is_wrong_with_a_site_is_found(
    tmp_path: Path, body: str, complaint: str | None
) -> None:
    assert _site(tmp_path, body) == ([complaint] if complaint else [])


def test_a_public_name_without_a_place_is_found(tmp_path: Path) -> None:
    _site(tmp_path, "")
    assert built.complaints(tmp_path, ["here", "gone"]) == ["sih.gone is not in the reference"]
