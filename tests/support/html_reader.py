"""Reads HTML as strictly as it can: every tag that is opened is closed, and none runs or loads anything."""

from html.parser import HTMLParser


class HtmlReader(HTMLParser):
    """Holds the text and the attributes of a piece of HTML, or fails."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "iframe", "style")
        found = [(name, value or "") for name, value in attrs]
        assert not [name for name, _ in found if name.startswith("on")]
        assert all(
            value.startswith("data:image/png;base64,")
            for name, value in found
            if name in ("src", "href")
        )
        self.attributes += found

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
