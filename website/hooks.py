"""What mkdocs calls while it builds the site: which pages there are, in which order, and what becomes of their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from website import formulas, links, notebooks, reference, repository

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOUND_FIRST = ("help.md", "installation.md")
"""Pages that a search shows first, beside the how-tos."""
BOOST = 3


def on_config(config: Any) -> Any:
    """Lay out the menu, and say where the reference has each name."""
    tasks = reference.tasks()
    config.extra["known"] = reference.known(tasks)
    config.extra["outputs"] = {}
    config.nav = repository.menu(DOCS, list(tasks))
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made: home and project from the repository, reference, commands, examples, notebooks."""
    made = repository.pages(ROOT) | reference.pages(DOCS)
    copied = {name: ROOT / "website" / name for name in ("style.css", "iframe-worker.js")}
    copied[formulas.FONT.name] = formulas.FONT
    examples = ROOT / "examples"
    for script in repository.scripts(examples):
        copied[f"examples/{script.relative_to(examples).as_posix()}"] = script
    for path, notebook in notebooks.executed(repository.tutorials(DOCS)).items():
        page = notebooks.shown(notebook, path.stem)
        made[f"tutorials/{path.stem}.md"] = page.markdown
        config.extra["outputs"][path.stem] = page.outputs
        for name, picture in page.pictures.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    for place, path in copied.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_post_build(config: Any) -> None:
    """Leave a page where the reference once had one, so that old links keep working."""
    for name, html in reference.old_pages().items():
        Path(config.site_dir, "reference", name).write_text(html)
    for old, new in repository.MOVED.items():
        page = reference.moved(old, f'<p><a href="{new}.html">{new}</a></p>')
        Path(config.site_dir, f"{old}.html").write_text(page)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Point links at pages of the site, and names in code font at the reference."""
    place = page.file.src_uri
    if place.startswith("how-to/") or place in FOUND_FIRST:
        page.meta["search"] = {"boost": BOOST}
    text = links.site_links(links.spaced(markdown), repository.source(place), place)
    return links.linked_names(text, config.extra["known"])


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Draw the formulas, and put the outputs of notebooks in their places."""
    html = formulas.drawn(html)
    for place, output in config.extra["outputs"].get(Path(page.file.src_uri).stem, {}).items():
        html = html.replace(place, output)
    return html
