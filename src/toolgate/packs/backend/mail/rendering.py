"""Mails from templates: HTML in which every value is escaped, and the same as plain text."""

from functools import cache
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
