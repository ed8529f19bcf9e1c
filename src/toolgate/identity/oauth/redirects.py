"""Where a client may have its answer sent (RFC 8252, OAuth 2.1 section 2.3)."""

import re
from urllib.parse import SplitResult, urlsplit

MAX_CHARACTERS = 2000
LOOPBACK = ("127.0.0.1", "::1", "localhost")
PRIVATE_SCHEME = re.compile(r"[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+")
EDITOR_SCHEMES = ("cursor", "vscode", "vscode-insiders")
"""Editors that speak MCP and whose own schemes have no dot."""
VISIBLE = re.compile(r"[!-~]+")
HOST = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")


def broken_rule(uri: str) -> str | None:
    """What is wrong with a redirect address, as the end of a sentence, or None."""
    if len(uri) > MAX_CHARACTERS or not VISIBLE.fullmatch(uri) or "\\" in uri:
        return f"must be at most {MAX_CHARACTERS} visible ASCII characters"
    parts = _split(uri)
    if parts is None:
        return "must be an absolute address"
    if "#" in uri:
        return "must not have a fragment"
    if "@" in parts.netloc:
        return "must not have a user name"
    return _broken_place(parts)


def _broken_place(parts: SplitResult) -> str | None:
    if parts.scheme in ("http", "https"):
        if not HOST.fullmatch(parts.netloc.removesuffix(f":{parts.port}")):
            return "must name a host"
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            return "must be https, or http on 127.0.0.1, [::1] or localhost"
        return None
    if PRIVATE_SCHEME.fullmatch(parts.scheme) or parts.scheme in EDITOR_SCHEMES:
        return None
    return "must be https, http on loopback, or a scheme of your own such as com.example.app"


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port  # raises when it is no number
    except ValueError:
        return None
    return parts if parts.scheme else None


def is_allowed(uri: str, registered: tuple[str, ...]) -> bool:
    """Whether an address is one of the registered: equal, or on loopback but for the port."""
    if uri in registered:
        return True
    plain = _without_port(uri)
    return plain is not None and plain in {_without_port(one) for one in registered}


def _without_port(uri: str) -> str | None:
    """An http loopback address without its port; None for every other."""
    if broken_rule(uri):
        return None
    parts = urlsplit(uri)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return None
    host = parts.netloc.removesuffix(f":{parts.port}")
    return uri.replace(parts.netloc, host, 1)


def is_loopback(uri: str) -> bool:
    """Whether an address leads to this machine."""
    return not broken_rule(uri) and urlsplit(uri).hostname in LOOPBACK


def origin(uri: str) -> str:
    """What a form has to be allowed to lead to, as a content security policy writes it."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return f"{parts.scheme}:"
    # A policy cannot name an IPv6 address.
    return f"{parts.scheme}:" if "[" in parts.netloc else f"{parts.scheme}://{parts.netloc}"


def describe(uri: str) -> str:
    """Where an address leads, in words for a person."""
    parts = urlsplit(uri)
    if parts.scheme in ("http", "https"):
        local = parts.hostname in LOOPBACK
        return f"{parts.netloc} (this computer)" if local else parts.netloc
    return f"an app on this device ({parts.scheme}:)"
