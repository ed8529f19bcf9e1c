"""One request on its way to a response: the first, or the next after a redirect."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from toolgate.outbound.responses import FetchFailed

if TYPE_CHECKING:
    import httpx2

PORTS = {"http": 80, "https": 443}
CONNECT_SECONDS = 2.0
"""For one of the addresses of a name; it may have others."""
FOLLOWING = {"accept", "accept-language"}
"""Headers that a redirect takes along to another origin; any other may be a credential."""


class AddressPolicy(Enum):
    """Who chose an address, and so what may be reached and how."""

    PUBLIC = "public"
    """Somebody else: HTTPS to public addresses, and what the setting `outbound.allow` lists."""
    PROXIED = "proxied"
    """The operator: any address, through the proxy of the machine's environment if it has one."""
    DIRECT = "direct"
    """Who wrote a tool of the user's own: any address, never through a proxy."""


@dataclass(frozen=True, slots=True)
class Hop:
    """A request, and which addresses it may go to."""

    address_policy: AddressPolicy
    method: str
    url: "httpx2.URL"
    headers: Mapping[str, str]
    content: bytes | None = None

    def request(self, ours: Mapping[str, str], address: str | None = None) -> "httpx2.Request":
        """The request to the name in the URL, or for that name to one of its addresses."""
        import httpx2  # noqa: PLC0415

        headers, url, extensions = {**ours, **self.headers}, self.url, dict[str, Any]()
        if address is not None:
            headers["Host"] = url.netloc.decode("ascii")
            extensions["sni_hostname"] = url.raw_host.decode("ascii")
            extensions["timeout"] = {"connect": CONNECT_SECONDS}
            url = url.copy_with(host=address)
        return httpx2.Request(
            self.method, url, headers=headers, content=self.content, extensions=extensions
        )

    def redirect(self, location: str) -> "Hop":
        """The request to where a redirect points."""
        import httpx2  # noqa: PLC0415

        try:
            url = checked_url(self.url.join(location))
        except (httpx2.InvalidURL, ValueError):
            raise FetchFailed(f"{self.url.host} redirects to what is not a valid URL.") from None
        if url.scheme == "http" != self.url.scheme:
            raise FetchFailed(f"{self.url.host} redirects from https:// to http://.")
        if _origin(url) == _origin(self.url):
            return replace(self, url=url)
        headers = {name: self.headers[name] for name in self.headers if name.lower() in FOLLOWING}
        # That server chose this address, not who chose the first one.
        return Hop(AddressPolicy.PUBLIC, self.method, url, headers)


def checked_url(url: "str | httpx2.URL") -> "httpx2.URL":
    """The address, if a request can go there; else raise `FetchFailed`."""
    import httpx2  # noqa: PLC0415

    try:
        target = httpx2.URL(url)
    except httpx2.InvalidURL:
        raise FetchFailed("The address is not a valid URL.") from None
    if not target.host or target.userinfo:
        raise FetchFailed("The address must name a host, and no user or password.")
    if target.scheme not in PORTS:
        raise FetchFailed("The address must begin with https://.")
    return target


def port_of(url: "httpx2.URL") -> int:
    """The port, also where the URL leaves it out."""
    return url.port or PORTS[url.scheme]


def _origin(url: "httpx2.URL") -> tuple[str, str, int]:
    return url.scheme, url.host, port_of(url)
