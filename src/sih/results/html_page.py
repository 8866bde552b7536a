"""A self-contained HTML page: no script, no address, one style."""

from collections.abc import Iterable
from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("html_page.css")


def document(title: str, body: Iterable[str]) -> str:
    """Return an HTML document, from its title and its parts, that loads nothing and
    forbids loading.
    """
    style = STYLE.read_text()
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; img-src data:; style-src '
        "'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>\n"
    )
    return head + "\n".join(body) + "\n</body></html>\n"


def html_table(header: list[str], rows: Iterable[list[str]], kind: str = "parts") -> str:
    """Return a table of cells that are already HTML."""
    head = "".join(f'<th scope="col">{name}</th>' for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
