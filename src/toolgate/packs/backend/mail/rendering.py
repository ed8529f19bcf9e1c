"""Mails from templates: HTML in which every value is escaped, and the same as plain text."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.packs.backend.brand import BrandSettings
from toolgate.packs.backend.mail.content import Content
from toolgate.packs.backend.mail.message import UNSUBSCRIBE

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"
TEMPLATES = ("card", "plain", "order", "feedback")
DEFAULT = "card"
ENDING_A_LINE = {"p", "div", "tr", "li", "h1", "h2", "h3", "h4", "table", "ul", "ol", "br"}
UNSEEN = {"style", "script", "head", "title"}


@cache
def _templates() -> "Environment":
    # Imported here: a server that sends no mail never needs it.
    from jinja2 import (  # noqa: PLC0415
        Environment,
        FileSystemLoader,
        StrictUndefined,
        select_autoescape,
    )

    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, content: Content, brand: BrandSettings) -> tuple[str, str]:
    """The HTML and the text of a mail; a template that there is not is the card."""
    name = template if template in TEMPLATES else DEFAULT
    values = {"content": content, "brand": brand, "unsubscribe": UNSUBSCRIBE}
    html = _templates().get_template(f"{name}.html").render(values)
    return html, _templates().get_template("text.txt").render(values).strip() + "\n"


def text_of_html(html: str) -> str:
    """The words of HTML that a caller brings, with the addresses of its links."""
    reader = _TextReader()
    reader.feed(html)
    reader.close()
    lines = [" ".join(line.split()) for line in "".join(reader.parts).splitlines()]
    text, blank = list[str](), True
    for line in lines:
        if line or not blank:
            text.append(line)
        blank = not line
    return "\n".join(text).strip() + "\n"


class _TextReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._unseen = 0
        self._links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen += 1
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "a":
            self._links.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN and self._unseen:
            self._unseen -= 1
        elif tag == "a" and self._links:
            link = self._links.pop()
            self.parts.append(f" ({link})" if link.startswith(("http", "mailto:")) else "")
        elif tag in ENDING_A_LINE:
            self.parts.append("\n\n" if tag in {"p", "table"} or tag[0] == "h" else "\n")

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data.replace("\n", " "))
