"""Where a request comes from, in the size in which wrong guesses are counted."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from itertools import islice

from toolgate.sections import ServerSettings
from toolgate.transports.address import networks, parts_of, unmapped
from toolgate.transports.asgi import WHITE_SPACE, Scope

UNKNOWN = "unknown"
HOME = 64
"""Bits of an IPv6 address that a household or a machine cannot change at will."""
MAX_PROXIES = 16
"""Further ones are not looked for."""
LONGEST = 64
"""Characters of an address with its port."""
WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]+)?|([0-9.]+):[0-9]+")
FORWARDING = {b"forwarded", b"x-real-ip", b"via"}
"""Headers that only proxies write, beside those that begin with x-forwarded-."""

Ip = IPv4Address | IPv6Address


class Peers:
    """Finds who sent a request, past the proxies that are trusted."""

    def __init__(self, server: ServerSettings) -> None:
        self._proxies = networks(server.trusted_proxies)

    def __call__(self, scope: Scope) -> str:
        """The address, or of an IPv6 address its network.

        Behind trusted proxies it is the nearest one that is none of them. Where they say nothing,
        it is the proxy's own; where what they say cannot be believed, it is nobody's: anybody
        may have written it, and what it does must not count against others.
        """
        client = scope.get("client")
        nearest = _read(client[0]) if client else None
        if nearest is None or not self._trusted(nearest):
            return _place(nearest)
        older = self._client_of(_elements(scope, b"x-forwarded-for"), nearest)
        newer = self._client_of((_for(one) for one in _elements(scope, b"forwarded")), nearest)
        if older and newer and older != newer:
            # A proxy writes one of them, and anybody may have written the other.
            return _unclear(nearest)
        sender = older or newer or nearest
        return _unclear(nearest) if isinstance(sender, str) else _place(sender)

    def _client_of(self, elements: Iterable[str], nearest: Ip) -> Ip | str | None:
        """Whom a header names: the nearest address that is no trusted proxy's.

        The proxy's own where all are; `unknown` where it cannot be read; None without a header.
        """
        client = None
        for element in islice(elements, MAX_PROXIES):
            address = _read(element)
            if address is None:
                return UNKNOWN
            if not self._trusted(address):
                return address
            client = nearest
        return client

    def is_local(self, scope: Scope) -> bool:
        """Whether a request was sent by this machine itself, and passed no proxy on it."""
        client = scope.get("client")
        nearest = _read(client[0]) if client else None
        if nearest is None or not nearest.is_loopback or self._trusted(nearest):
            return False
        return not any(
            name in FORWARDING or name.startswith(b"x-forwarded-") for name, _ in scope["headers"]
        )

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


def _unclear(proxy: Ip) -> str:
    return f"{UNKNOWN} via {_place(proxy)}"


def _for(element: str) -> str:
    """Whom an element of `Forwarded` names."""
    return (parts_of(element) or {}).get("for", "")


def _elements(scope: Scope, name: bytes) -> Iterator[str]:
    """The values of a header, the last first: proxies add theirs at the end.

    Each is split off when it is asked for: what is before it may be long, and a stranger's.
    """
    for key, value in reversed(scope["headers"]):
        rest = value.decode("latin-1") if key == name else ""
        while rest:
            rest, _, last = rest.rpartition(",")
            yield last.strip(WHITE_SPACE)


def _read(text: str) -> Ip | None:
    """An address, perhaps with a port; None when it is none."""
    if len(text) > LONGEST:
        return None
    found = WITH_PORT.fullmatch(text)
    try:
        return unmapped(ip_address((found[1] or found[2]) if found else text))
    except ValueError:
        return None
