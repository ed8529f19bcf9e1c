"""Our few pages: plain HTML from templates, without scripts, and not to be framed."""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgate.identity.oauth import paths
from toolgate.identity.oauth.messages import NO_STORE, Header, Request, Response

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
FILES = {
    paths.STYLE: ("style.css", "text/css; charset=utf-8"),
    paths.ICON: ("favicon.svg", "image/svg+xml"),
    paths.OLD_ICON: ("favicon.ico", "image/x-icon"),
}
"""What pages refer to: the file, and its media type."""
BEGIN_AGAIN = "Go back to the application and begin again."


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
    request: Request,
    name: str,
    *headers: Header,
    status: int = 200,
    rule: str | None = None,
    leads_to: str = "",
    **values: Any,
) -> Response:
    """A page; `leads_to` is where its form may send the browser, beside ourselves."""
    fixed = {"style": paths.STYLE, "icon": paths.ICON, "home": paths.HOME, "server": request.host}
    body = _templates().get_template(f"{name}.html").render(**fixed, **values)
    policy = (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
        f"frame-ancestors 'none'; form-action 'self' {leads_to}"
    )
    all_headers = (*FIXED, ("content-security-policy", policy.rstrip()), *headers)
    return Response(status=status, headers=all_headers, body=body.encode(), rule=rule)


def error_page(
    request: Request,
    message: str,
    rule: str | None,
    *headers: Header,
    status: int = 400,
    then: str = BEGIN_AGAIN,
) -> Response:
    """A page that says what went wrong and what to do; the browser is sent nowhere."""
    return page(request, "error", *headers, status=status, rule=rule, message=message, then=then)


@cache
def file_at(path: str) -> Response:
    """One of the files that our pages refer to."""
    name, media_type = FILES[path]
    headers = (
        ("content-type", media_type),
        ("cache-control", "public, max-age=3600"),
        ("x-content-type-options", "nosniff"),
    )
    return Response(headers=headers, body=(FOLDER / name).read_bytes())
