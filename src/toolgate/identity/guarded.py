"""Fetching from an address that a stranger chose, without becoming the stranger's hand inside.

The name is looked up once, every address it has must be public, and the connection goes to one of
the addresses that were checked: a name that means something else a moment later gains nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Self

import anyio

from toolgate.identity.fetching import HEADERS, SECONDS, Fetched, FetchFailed, bounded, read

if TYPE_CHECKING:
    import ssl

    import httpx2

MOST_BYTES = 64 * 1024
MOST_CONNECTIONS = 16
CONNECTED_WITHIN = 2.0
HTTPS_PORT = 443

Resolve = Callable[[str, int], Awaitable[list[str]]]

UNICAST = IPv6Network("2000::/3")
"""All that is handed out for the public internet; what is outside of it is special."""

SPECIAL_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocols of the IETF; Teredo, which carries an IPv4 address, is in it
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which carries an IPv4 address
        "3fff::/20",  # documentation
    )
)
SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared, behind a carrier's NAT; also metadata of some clouds
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # looks public, is the inside of a cloud
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocols of the IETF
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet and leads nowhere else."""
    found: IPv4Address | IPv6Address = ip_address(address)
    # Lists of our own, because what Python calls global differs between its versions.
    if isinstance(found, IPv4Address):
        return not any(found in network for network in SPECIAL_V4)
    return (
        found.scope_id is None
        and found in UNICAST
        and not any(found in network for network in SPECIAL_V6)
    )


async def resolve(host: str, port: int) -> list[str]:
    """Every address of a name; none when it has none."""
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


class GuardedFetcher:
    """Fetches JSON over HTTPS from public addresses only; redirects are not followed.

    `allow_private` is for tests: it permits plain HTTP, any port and any address.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        seconds: float = SECONDS,
        most_bytes: int = MOST_BYTES,
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.allow_private = allow_private
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._resolve = resolve
        self._tls = tls
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def get(self, url: str) -> Fetched:
        """The JSON object at an address; raise `FetchFailed` unless it may be and can be had."""
        target = self._checked(url)
        async with bounded(target.host, self._seconds):
            addresses = await self._addresses(target)
            return await self._fetched(target, addresses)

    def _checked(self, url: str) -> httpx2.URL:
        import httpx2  # noqa: PLC0415

        try:
            target = httpx2.URL(url)
        except httpx2.InvalidURL:
            raise FetchFailed("The address is not a valid URL.") from None
        if not target.host or target.userinfo:
            raise FetchFailed("The address must name a host, and no user or password.")
        if self.allow_private and target.scheme == "http":
            return target
        if target.scheme != "https":
            raise FetchFailed("The address must begin with https://.")
        if not self.allow_private and _port(target) != HTTPS_PORT:
            raise FetchFailed(f"The address must use port {HTTPS_PORT}.")
        return target

    async def _addresses(self, target: httpx2.URL) -> list[str]:
        found = await self._resolve(target.raw_host.decode("ascii"), _port(target))
        # One sentence for both, so that nobody learns which names exist inside.
        if not found or not (self.allow_private or all(is_public(one) for one in found)):
            raise FetchFailed(f"{target.host} has no public address.")
        return found

    async def _fetched(self, target: httpx2.URL, addresses: list[str]) -> Fetched:
        import httpx2  # noqa: PLC0415

        client = self._opened()
        for address in addresses:
            request = client.build_request(
                "GET",
                target.copy_with(host=address),
                headers={"Host": target.netloc.decode("ascii")},
                extensions={"sni_hostname": target.raw_host.decode("ascii")},
            )
            try:
                answer = await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
            return await read(answer, target.host, self._most_bytes)
        raise FetchFailed(f"{target.host} could not be reached.")

    def _opened(self) -> httpx2.AsyncClient:
        import httpx2  # noqa: PLC0415

        if self._client is None:
            self._client = httpx2.AsyncClient(
                headers=HEADERS,
                verify=self._tls or httpx2.create_ssl_context(),
                # A proxy would look the name up again, by itself.
                trust_env=False,
                timeout=httpx2.Timeout(None, connect=CONNECTED_WITHIN),
                # No connection is used twice: two names can have one address.
                limits=httpx2.Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=0),
            )
        return self._client


def _port(target: httpx2.URL) -> int:
    return target.port or {"http": 80}.get(target.scheme, HTTPS_PORT)
