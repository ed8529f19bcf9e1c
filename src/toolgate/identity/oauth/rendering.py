"""Our few pages: plain HTML from templates, without scripts, and not to be framed."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.identity.oauth.messages import NO_STORE, Answer, Header
from toolgate.identity.oauth.paths import STYLE

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "pages"
FIXED: tuple[Header, ...] = (
    ("content-type", "text/html; charset=utf-8"),
    ("x-frame-options", "DENY"),
    ("x-content-type-options", "nosniff"),
    # Not no-referrer: browsers then send `Origin: null` with our own forms.
    ("referrer-policy", "same-origin"),
    NO_STORE,
)


@cache
def _templates() -> "Environment":
    # Imported here: a server on which nobody signs in never needs it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    return Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page(
    name: str,
    *headers: Header,
    status: int = 200,
    rule: str | None = None,
    leads_to: str = "",
    **values: Any,
) -> Answer:
    """A page; `leads_to` is where its form may send the browser, beside ourselves."""
    body = _templates().get_template(f"{name}.html").render(style=STYLE, **values)
    policy = (
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
        f"form-action 'self' {leads_to}"
    )
    told = (*FIXED, ("content-security-policy", policy.rstrip()), *headers)
    return Answer(status=status, headers=told, body=body.encode(), rule=rule)


def error_page(message: str, rule: str | None, *, status: int = 400) -> Answer:
    """A page that says what went wrong; the browser is sent nowhere."""
    return page("error", status=status, rule=rule, message=message)


@cache
def style() -> Answer:
    """The style sheet of our pages."""
    told = (
        ("content-type", "text/css; charset=utf-8"),
        ("cache-control", "public, max-age=3600"),
        ("x-content-type-options", "nosniff"),
    )
    return Answer(headers=told, body=(FOLDER / "style.css").read_bytes())
