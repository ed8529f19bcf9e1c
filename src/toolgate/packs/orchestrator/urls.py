"""URLs that agents may read: without user, password, query or fragment."""

from urllib.parse import urlsplit, urlunsplit

MAX_CHARACTERS = 512


def without_credentials(url: str) -> str | None:
    """The URL without user and password; None where it is none, or where more could be secret.

    A query is refused: links that are signed carry their secret there.
    """
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return None
    if not parts.scheme or not host or "?" in url or "#" in url:
        return None
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    return urlunsplit((parts.scheme, place, parts.path, "", ""))
