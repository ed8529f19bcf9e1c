"""Where a request comes from, in the size in which wrong guesses are counted."""

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from toolgate.sections import Server
from toolgate.transports.address import networks, parts_of, plain
from toolgate.transports.asgi import Scope

UNKNOWN = "unknown"
HOME = 64
"""Bits of an IPv6 address that a household or a machine cannot change at will."""
WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")

Ip = IPv4Address | IPv6Address


class Peers:
    """Finds who sent a request, past the proxies that are trusted."""

    def __init__(self, server: Server) -> None:
        self._proxies = networks(server.trusted_proxies)

    def __call__(self, scope: Scope) -> str:
        """The address, or of an IPv6 address its network.

        Behind trusted proxies it is the nearest one that is none of them. Where they do not say,
        or two headers contradict, it is the proxy's own.
        """
        client = scope.get("client")
        nearest = _read(client[0]) if client else None
        if nearest is None or not self._trusted(nearest):
            return _place(nearest)
        strangers = (one for one in _forwarded(scope) if one is None or not self._trusted(one))
        return _place(next(strangers, None) or nearest)

    def of_connection(self, host: str) -> str | None:
        """Where a connection comes from; None for a trusted proxy, behind which are many."""
        address = _read(host)
        return None if address and self._trusted(address) else _place(address)

    def _trusted(self, address: Ip) -> bool:
        return any(address in network for network in self._proxies)


def _place(address: Ip | None) -> str:
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), HOME), strict=False))
    return str(address) if address else UNKNOWN


def _forwarded(scope: Scope) -> list[Ip | None]:
    """Where the proxies say the request came from, the nearest first."""
    older = [_read(one) for one in _elements(scope, b"x-forwarded-for")]
    parts = [parts_of(one) or {} for one in _elements(scope, b"forwarded")]
    newer = [_read(one.get("for", "")) for one in parts]
    if older and newer and older[0] != newer[0]:
        return []  # a proxy writes one of them, and a stranger may have written the other
    return older or newer


def _elements(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, the last first: proxies add theirs at the end."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [one.strip() for one in ",".join(values).split(",")][::-1] if values else []


def _read(text: str) -> Ip | None:
    """An address, perhaps with a port; None when it is none."""
    found = WITH_PORT.fullmatch(text)
    try:
        return plain(ip_address((found[1] or found[2]) if found else text))
    except ValueError:
        return None
