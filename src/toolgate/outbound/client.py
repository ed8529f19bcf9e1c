"""Requests to other servers: one connection pool and one TLS context for all of them."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Self

import anyio

from toolgate.outbound.addresses import Guard, Resolve, resolve
from toolgate.outbound.hops import AddressPolicy, Hop, checked_url, port_of
from toolgate.outbound.responses import (
    GZIP,
    FetchedResponse,
    FetchFailed,
    FetchTimedOut,
    ResponseLimits,
    StreamedResponse,
    Unconnected,
    read_body,
    read_chunks,
)

if TYPE_CHECKING:
    import ssl

    import httpx2

USER_AGENT = {"User-Agent": "toolgate"}
SAFE_METHODS = {"GET", "HEAD"}


class Outbound:
    """The way out; everything is made when it is first needed, because TLS is not free."""

    def __init__(
        self,
        allow: Collection[str] = (),
        *,
        resolve: Resolve = resolve,
        tls: "ssl.SSLContext | None" = None,
    ) -> None:
        self._guard = Guard(frozenset(one.lower() for one in allow), resolve)
        self._tls = tls
        self._transports: dict[tuple[str | None, bool], httpx2.AsyncHTTPTransport] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        while self._transports:
            await self._transports.popitem()[1].aclose()

    def allows(self, host: str, port: int) -> bool:
        """Whether the setting `outbound.allow` lists this host and port."""
        return self._guard.allows(host, port)

    async def fetch(
        self,
        url: str,
        limits: ResponseLimits,
        *,
        address_policy: AddressPolicy = AddressPolicy.PUBLIC,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> FetchedResponse:
        """One whole response; raise `FetchFailed` unless it may be and can be had."""
        import httpx2  # noqa: PLC0415

        hop = Hop(address_policy, method, checked_url(url), headers or {}, content)
        host = hop.url.host
        try:
            with anyio.fail_after(limits.seconds):
                return await self._follow(hop, limits)
        except TimeoutError:
            raise FetchTimedOut(host, limits.seconds) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
            raise Unconnected(f"{host} could not be reached.") from problem
        except httpx2.HTTPError as problem:
            raise FetchFailed(f"{host} could not be reached.") from problem

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        seconds: float,
        address_policy: AddressPolicy = AddressPolicy.PUBLIC,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """The response to a GET, whatever its status, read as it comes; no redirect is followed.

        `seconds`: how long the server may be silent, before its response and within it.
        """
        import httpx2  # noqa: PLC0415

        hop = Hop(address_policy, "GET", checked_url(url), headers or {})
        host = hop.url.host
        try:
            with anyio.fail_after(seconds):
                response = await self._send(hop, {**USER_AGENT, "Accept-Encoding": "identity"})
        except TimeoutError:
            raise FetchTimedOut(host, seconds) from None
        except httpx2.HTTPError as problem:
            raise FetchFailed(f"{host} could not be reached.") from problem
        chunks = read_chunks(response, host, seconds)
        try:
            yield StreamedResponse(str(hop.url), response.status_code, response.headers, chunks)
        finally:
            await response.aclose()

    def client(self, seconds: float) -> "httpx2.AsyncClient":
        """A client of the HTTP library for a handler of the user's own; it may close it."""
        import httpx2  # noqa: PLC0415

        from toolgate.outbound.connections import UnclosableTransport  # noqa: PLC0415

        return httpx2.AsyncClient(
            transport=UnclosableTransport(self._transport()),
            timeout=seconds,
            follow_redirects=False,
            # Neither proxies nor a .netrc of the machine: they would add credentials.
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={**USER_AGENT, "Accept": "application/json", "Accept-Encoding": "identity"},
        )

    async def _follow(self, hop: Hop, limits: ResponseLimits) -> FetchedResponse:
        ours = {**USER_AGENT, "Accept-Encoding": GZIP if limits.compressed else "identity"}
        follows = limits.redirects if hop.method in SAFE_METHODS else 0
        for _ in range(1 + follows):
            response = await self._send(hop, ours)
            try:
                if not (follows and response.has_redirect_location):
                    body = await read_body(response, hop.url.host, limits)
                    return FetchedResponse(
                        str(hop.url), response.status_code, response.headers, body
                    )
            finally:
                await response.aclose()
            hop = hop.redirect(response.headers["location"])
        raise FetchFailed(f"{hop.url.host} is behind more than {follows} redirects.")

    async def _send(self, hop: Hop, ours: Mapping[str, str]) -> "httpx2.Response":
        import httpx2  # noqa: PLC0415

        from toolgate.outbound.connections import proxy_for  # noqa: PLC0415

        if hop.address_policy is not AddressPolicy.PUBLIC:
            proxy = proxy_for(hop.url) if hop.address_policy is AddressPolicy.PROXIED else None
            return await self._transport(proxy).handle_async_request(hop.request(ours))
        name = hop.url.raw_host.decode("ascii")
        for address in await self._guard.addresses(hop.url.scheme, name, port_of(hop.url)):
            request = hop.request(ours, address)
            try:
                return await self._transport(pinned=True).handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        raise Unconnected(f"{hop.url.host} could not be reached.")

    def _transport(
        self, proxy: str | None = None, *, pinned: bool = False
    ) -> "httpx2.AsyncHTTPTransport":
        """The connection pool; connections that are pinned or go through a proxy are not kept."""
        import httpx2  # noqa: PLC0415

        from toolgate.outbound.connections import CleanTransport, single_use  # noqa: PLC0415

        transport = self._transports.get((proxy, pinned))
        if transport is None:
            self._tls = self._tls or httpx2.create_ssl_context()
            reusable = proxy is None and not pinned
            transport = CleanTransport(self._tls) if reusable else single_use(self._tls, proxy)
            self._transports[proxy, pinned] = transport
        return transport
