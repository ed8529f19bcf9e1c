"""Under which address a request reached us: scheme, host, and what follows from them.

Headers of a reverse proxy (X-Forwarded-Proto, X-Forwarded-Host, Forwarded) count only when the
request comes from a trusted proxy, and then only what the nearest one added. Nothing else in
toolgate believes them, but for `peers` (X-Forwarded-For).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from toolgate.identity.oauth.paths import MCP_PATHS, RESOURCE_METADATA
from toolgate.sections import ServerSettings
from toolgate.setting_types import BadSettings
from toolgate.transports.asgi import Scope, header

ADDRESS = "toolgate.address"
HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
FORWARDED_PART = re.compile(r'\s*([A-Za-z]+)=(?:"([^"\\]*)"|([^\s";,]*))\s*')
SCHEMES = ("http", "https")

Network = IPv4Network | IPv6Network
Told = tuple[str | None, str | None]
"""A scheme and a host, where they are known."""


@dataclass(frozen=True, slots=True)
class Address:
    """Our own address, as the caller knows it."""

    base: str
    """Scheme and host, without a slash at the end; also the issuer of tokens."""
    resources: frozenset[str]
    """What tokens may be made for."""

    @property
    def secure(self) -> bool:
        """Whether the caller speaks HTTPS, to us or to a proxy before us."""
        return self.base.startswith("https://")

    def metadata_url(self, path: str) -> str:
        """Where a client learns how to get credentials for a path."""
        resource = path.removesuffix("/")
        return f"{self.base}{RESOURCE_METADATA}{resource if resource in MCP_PATHS else ''}"


@lru_cache(maxsize=1024)
def address_of(base: str) -> Address:
    """The address with this scheme and host."""
    return Address(base, frozenset(base + path for path in MCP_PATHS))


def base_url(server: ServerSettings) -> str:
    """The address to give to people where no request tells it."""
    if server.public_url:
        return server.public_url.rstrip("/")
    scheme = "https" if server.https else "http"
    host = "localhost" if server.host in ("0.0.0.0", "::") else server.host  # noqa: S104
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.port}"


class Addresses:
    """Finds out under which address a request came in."""

    def __init__(self, server: ServerSettings) -> None:
        self._public = _public(server.public_url)
        self._proxies = networks(server.trusted_proxies)
        self.public_host = urlsplit(self._public).netloc if self._public else None

    def requested(self, scope: Scope) -> Told:
        """Scheme and host that the request is addressed to, as it or a trusted proxy tells them."""
        scheme, host = scope.get("scheme", "http"), header(scope, b"host")
        if self._proxies and self._trusted(scope.get("client")):
            forwarded = _forwarded(scope)
            return (forwarded[0] or scheme, forwarded[1] or host) if forwarded else (scheme, None)
        return scheme, host

    def address(self, scheme: str | None, host: str | None) -> Address | None:
        """Our address for a request with this scheme and host; None where they are not clear."""
        if scheme not in SCHEMES or host is None or not HOST.fullmatch(host):
            return None
        return address_of(self._public or f"{scheme}://{host.lower()}")

    def _trusted(self, peer: tuple[str, int] | None) -> bool:
        if not peer:
            return False
        try:
            address = ip_address(peer[0])
        except ValueError:
            return False
        return any(unmapped(address) in network for network in self._proxies)


def unmapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address also where it is written as an IPv6 one."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _forwarded(scope: Scope) -> Told | None:
    """Scheme and host as the nearest proxy tells them; None where two headers contradict."""
    older = (_last(scope, b"x-forwarded-proto"), _last(scope, b"x-forwarded-host"))
    newer = _standard(_last(scope, b"forwarded"))
    if newer is None:
        return None
    for one, other in zip(older, newer, strict=True):
        if one and other and one.lower() != other.lower():
            return None
    if any(older):  # a proxy that writes these passes on a stranger's Forwarded
        return _lower(older[0]), older[1]
    return _lower(newer[0]), newer[1]


def _lower(text: str | None) -> str | None:
    return text.lower() if text else None


def _last(scope: Scope, name: bytes) -> str | None:
    """The last value of a header: proxies add theirs at the end."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return ",".join(values).rpartition(",")[2].strip() or None


def _standard(element: str | None) -> Told | None:
    """Scheme and host of one element of `Forwarded`; None when it cannot be read."""
    found = parts_of(element or "")
    return None if found is None else (found.get("proto"), found.get("host"))


def parts_of(element: str) -> dict[str, str] | None:
    """What one element of `Forwarded` (RFC 7239) says; None when it cannot be read."""
    found: dict[str, str] = {}
    for part in element.split(";"):
        if not part.strip():
            continue
        pair = FORWARDED_PART.fullmatch(part)
        if pair is None:
            return None
        found[pair[1].lower()] = pair[2] if pair[2] is not None else pair[3]
    return found


def _public(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        good = parts.scheme in SCHEMES and HOST.fullmatch(parts.netloc)
    except ValueError:
        good, parts = None, urlsplit("")
    if not good or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise BadSettings(
            "Setting server.public_url must be a scheme and a host, such as "
            "https://tools.example.com."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def networks(entries: Iterable[str]) -> tuple[Network, ...]:
    """Setting server.trusted_proxies, read."""
    found: list[Network] = []
    for entry in entries:
        try:
            found.append(ip_network(entry))
        except ValueError:
            raise BadSettings(
                f"Setting server.trusted_proxies: {entry} is no address and no network. "
                "Write 10.0.0.7 or 10.0.0.0/24."
            ) from None
    return tuple(found)
