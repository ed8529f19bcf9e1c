"""The way out: one pooled HTTP client for all of a user's own tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import TYPE_CHECKING

import anyio

from toolgate.gate.errors import ResultTooLarge, RouteFailed, TimedOut, Unavailable

if TYPE_CHECKING:
    import httpx2


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back: the status and the whole body."""

    status: int
    body: bytes


class Outbound:
    """A client that is made when it is first needed: its TLS context is not free."""

    def __init__(
        self,
        *,
        seconds: float,
        most_bytes: int,
        transport: "Callable[[], httpx2.AsyncHTTPTransport] | None" = None,
    ) -> None:
        self.seconds = seconds
        self._transport = transport
        self._most_bytes = most_bytes
        self._client: httpx2.AsyncClient | None = None

    def client(self) -> "httpx2.AsyncClient":
        """The client."""
        if self._client is None:
            # Imported here: without tools of one's own nothing calls out.
            import httpx2  # noqa: PLC0415

            from toolgate.extend.clean_connections import clean_transport  # noqa: PLC0415

            self._client = httpx2.AsyncClient(
                transport=(self._transport or clean_transport)(),
                timeout=self.seconds,
                follow_redirects=False,
                # Neither proxies nor a .netrc of the machine: they would add credentials.
                trust_env=False,
                # One client for all callers, so what a route sets for one is kept for none.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                headers={
                    "User-Agent": f"toolgate/{version('toolgate')}",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                },
            )
        return self._client

    async def close(self) -> None:
        """Give connections back."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def ask(
        self, tool: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> Answered:
        """One request, bounded in time and size; every failure is one the caller may know."""
        import httpx2  # noqa: PLC0415

        try:
            with anyio.fail_after(self.seconds):
                return await self._ask(tool, method, url, headers, content)
        except (TimeoutError, httpx2.TimeoutException):
            told = f"The route of {tool} did not answer within {self.seconds:g} s. Try again later."
            raise TimedOut(told) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
            told = f"The route of {tool} cannot be reached. Try again later."
            raise Unavailable(told) from problem

    async def _ask(
        self, tool: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> Answered:
        request = self.client().stream(method, url, headers=headers, content=content)
        async with request as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise RouteFailed(f"The route of {tool} answered in an encoding nobody asked for.")
            body = bytearray()
            async for part in response.aiter_raw():
                body += part
                if len(body) > self._most_bytes:
                    raise ResultTooLarge(
                        f"The route of {tool} answered more than {self._most_bytes} bytes. "
                        "Ask for fewer items or use a filter."
                    )
            return Answered(response.status_code, bytes(body))
