"""Addresses of providers, as the operator or the provider's own document gives them."""

import hmac
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from toolgate.identity.providers import SignInFailed

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def is_safe(url: object) -> bool:
    """Whether an address is https, or http that stays on this machine."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def checked_url(setting: str, url: str) -> str:
    """The address, unless keys or tokens would travel to it in the open."""
    if not is_safe(url):
        raise ValueError(f"Setting {setting}: must begin with https:// (http:// only on loopback).")
    return url


def with_query(url: str, query: Mapping[str, str]) -> str:
    """An address with more in its query."""
    parts = urlsplit(url)
    joined = "&".join(part for part in (parts.query, urlencode(query)) if part)
    return parts._replace(query=joined).geturl()


def check_state(query: Mapping[str, str], remembered: Mapping[str, str]) -> None:
    """Refuse an answer that does not belong to the sign-in this browser began."""
    expected, state = remembered.get("state", ""), query.get("state", "")
    if not expected or not hmac.compare_digest(expected.encode(), state.encode()):
        raise SignInFailed("This answer belongs to another sign-in. Start again.")
