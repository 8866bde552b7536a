"""Notebooks: executed when the site is built, kept by content, and shown as pages like any other.

One that needs the field's tools (`"sih": {"set_up": "tools"}` in its metadata) is shown with the outputs it was saved
with; `make test-tools` runs it. With SIH_NOTEBOOKS=saved in the environment none is executed, for a quick look at the
other pages.
"""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

KEPT = Path("out/notebooks")
SOURCE = Path("src/sih")
INLINE = "module://matplotlib_inline.backend_inline"
"""What draws into a notebook, whatever the caller's environment asks for."""
SECONDS = 180
"""What a notebook may take, all cells together being meant to take less than 60."""


@dataclass
class Shown:
    """Holds a notebook as a page: its Markdown, the HTML to put into it afterwards, and its pictures by name."""

    markdown: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)


def executed(paths: list[Path]) -> dict[Path, Any]:
    """Read the notebooks and run those whose cells, or whose package, changed since they were last run."""
    source = _digest(
        *sorted(p for p in SOURCE.rglob("*") if p.suffix in {".py", ".c", ".json", ".safetensors"})
    )
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1))) as pool:
        return dict(zip(paths, pool.map(lambda path: _executed(path, source), paths), strict=True))


def shown(notebook: Any, name: str) -> Shown:
    """Turn a notebook into a page. Its pictures stand in the folder `name`."""
    page = Shown()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_output(output, name, page) for output in cell.outputs]
    first = parts[0].partition("\n")
    note = f'*A notebook: <a href="{name}.ipynb" download>download it</a> and run it.*'
    page.markdown = "\n\n".join([first[0], note, first[2], *parts[1:]]) + "\n"
    return page


def _output(output: Any, name: str, page: Shown) -> str:
    if output.output_type == "error":
        raise ValueError(f"{name}: {output.ename}: {output.evalue}")
    if output.output_type == "stream":
        return _aside(f"<pre>{escape(output.text.rstrip())}</pre>", page)
    data = output.data
    for kind, suffix in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in data:
            picture = f"{name}/{len(page.pictures) + 1}.{suffix}"
            page.pictures[picture] = (
                data[kind].encode() if suffix == "svg" else b64decode(data[kind])
            )
            return f"![what the cell above draws]({picture})"
    if "text/html" in data:
        return _aside(data["text/html"], page)
    return _aside(f"<pre>{escape(data.get('text/plain', '').rstrip())}</pre>", page)


def _aside(html: str, page: Shown) -> str:
    """Keep the HTML of an output for later, out of Markdown's reach."""
    place = f"<!--output {len(page.outputs) + 1}-->"
    page.outputs[place] = f'<div class="notebook-output">{html}</div>'
    return f'<div markdown="0">{place}</div>'


def _executed(path: Path, source: str) -> Any:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    quick = os.environ.get("SIH_NOTEBOOKS") == "saved"
    if quick or notebook.metadata.get("sih", {}).get("set_up") == "tools":
        return notebook
    kept = (
        KEPT
        / f"{path.stem}-{hashlib.sha256((_digest(path) + source).encode()).hexdigest()[:16]}.ipynb"
    )
    if kept.exists():
        return nbformat.read(kept, as_version=4)
    KEPT.mkdir(parents=True, exist_ok=True)
    settings = {"kernel_name": "python3", "timeout": SECONDS, "coalesce_streams": True}
    client = NotebookClient(notebook, resources={"metadata": {"path": str(KEPT)}}, **settings)
    client.execute(env={**os.environ, "MPLBACKEND": INLINE})
    part = kept.with_suffix(".part")
    nbformat.write(notebook, part)
    part.replace(kept)
    return notebook


def _digest(*paths: Path) -> str:
    whole = hashlib.sha256()
    for path in paths:
        whole.update(str(path).encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
