"""Which addresses may be reached for somebody else, without becoming their hand inside.

The name is looked up once, every address it has must be public, and the connection goes to one of
the addresses that were checked: a name that means something else a moment later gains nothing.
"""

import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import anyio

from toolgate.outbound.responses import AddressRefused, FetchFailed

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
    parsed: IPv4Address | IPv6Address = ip_address(address)
    # Lists of our own, because what Python calls global differs between its versions.
    if isinstance(parsed, IPv4Address):
        return not any(parsed in network for network in SPECIAL_V4)
    return (
        parsed.scope_id is None
        and parsed in UNICAST
        and not any(parsed in network for network in SPECIAL_V6)
    )


async def resolve(host: str, port: int) -> list[str]:
    """Every address of a name; none when it has none."""
    try:
        results = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in results))


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets through HTTPS to public addresses, and what the operator allows."""

    allow: Collection[str] = ()
    """`HOST:PORT` that may be reached at any address, also without TLS."""
    resolve: Resolve = resolve

    def allows(self, host: str, port: int) -> bool:
        """Whether the operator allows this host and port by name."""
        return f"[{host}]:{port}" in self.allow or f"{host}:{port}" in self.allow

    async def addresses(self, scheme: str, host: str, port: int) -> list[str]:
        """The addresses to connect to; raise `FetchFailed` unless all of them may be reached."""
        allowed = self.allows(host, port)
        if not allowed and scheme != "https":
            raise AddressRefused("The address must begin with https://.")
        if not allowed and port != HTTPS_PORT:
            raise AddressRefused(f"The address must use port {HTTPS_PORT}.")
        addresses = await self.resolve(host, port)
        # One sentence for both, so that nobody learns which names exist inside.
        if not addresses or not (allowed or all(is_public(one) for one in addresses)):
            failure = AddressRefused if addresses else FetchFailed  # a name may come to be
            raise failure(f"{host} has no public address.")
        return addresses
