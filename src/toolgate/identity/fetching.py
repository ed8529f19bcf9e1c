"""JSON from other servers: bounded in size and time, nothing followed, nothing unpacked.

`Fetcher` is for addresses the operator chose. Addresses that strangers choose go through
`guarded.py`. The HTTP library is loaded when something is fetched, not before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import anyio
import orjson

if TYPE_CHECKING:
    import httpx2

SECONDS = 5.0
MOST_BYTES = 256 * 1024
OK = 200
LOOPBACK = ("127.0.0.1", "::1", "localhost")
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "toolgate"}


class FetchFailed(Exception):
    """Nothing usable was fetched; the message is fit for a page."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A JSON object from elsewhere."""

    status: int
    body: dict[str, Any]
    fresh_seconds: float | None
    """How long it may be kept; 0 for not at all, None when the server does not say."""


class Fetcher:
    """Fetches from addresses the operator chose, through the operator's proxy if there is one."""

    def __init__(self, *, seconds: float = SECONDS, most_bytes: int = MOST_BYTES) -> None:
        self._seconds = seconds
        self._most_bytes = most_bytes
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

    async def get(self, url: str, *, bearer: str | None = None) -> Fetched:
        """The JSON object at an address; raise `FetchFailed` unless it is there."""
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return await self._ask("GET", url, (OK,), headers=headers)

    async def post(
        self, url: str, form: Mapping[str, str], *, basic: tuple[str, str] | None = None
    ) -> Fetched:
        """The answer to a form, also when it is a refusal in JSON."""
        return await self._ask("POST", url, (OK, 400, 401, 403), data=dict(form), auth=basic)

    async def _ask(
        self,
        method: str,
        url: str,
        statuses: Collection[int],
        *,
        auth: tuple[str, str] | None = None,
        **what: Any,
    ) -> Fetched:
        import httpx2  # noqa: PLC0415

        if self._client is None:
            self._client = httpx2.AsyncClient(headers=HEADERS, timeout=None)
        request = self._client.build_request(method, url, **what)
        async with bounded(request.url.host, self._seconds):
            answer = await self._client.send(request, auth=auth, stream=True)
            return await read(answer, request.url.host, self._most_bytes, statuses)


@asynccontextmanager
async def bounded(host: str, seconds: float) -> AsyncGenerator[None]:
    """Ends what takes too long, and says in a sentence what went wrong on the way."""
    import httpx2  # noqa: PLC0415

    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        raise FetchFailed(f"{host} did not answer within {seconds:g} s.") from None
    except httpx2.HTTPError as problem:
        raise FetchFailed(f"{host} could not be reached.") from problem


async def read(
    answer: httpx2.Response, host: str, most_bytes: int, statuses: Collection[int] = (OK,)
) -> Fetched:
    """Read an answer that is still on its way, as a JSON object; close it in any case."""
    try:
        _check(answer, host, statuses)
        content = bytearray()
        async for chunk in answer.aiter_raw():
            content += chunk
            if len(content) > most_bytes:
                raise FetchFailed(f"{host} sent more than {most_bytes:,} bytes.")
    finally:
        await answer.aclose()
    return Fetched(answer.status_code, _object(content, host), _fresh_seconds(answer.headers))


def _check(answer: httpx2.Response, host: str, statuses: Collection[int]) -> None:
    if answer.is_redirect:
        raise FetchFailed(f"{host} answered with a redirect; redirects are not followed.")
    if answer.status_code not in statuses:
        raise FetchFailed(f"{host} answered with status {answer.status_code}.")
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (
        kind.startswith("application/") and kind.endswith("+json")
    ):
        raise FetchFailed(f"{host} did not send JSON (application/json).")
    # Unpacking is what makes a small answer a large one.
    if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise FetchFailed(f"{host} sent a compressed answer, which was not asked for.")


def _object(content: bytearray, host: str) -> dict[str, Any]:
    try:
        body: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise FetchFailed(f"{host} did not send valid JSON.") from None
    if not isinstance(body, dict):
        raise FetchFailed(f"{host} did not send a JSON object.")
    return cast("dict[str, Any]", body)


def _fresh_seconds(headers: httpx2.Headers) -> float | None:
    told: dict[str, str] = {}
    for directive in headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.partition("=")
        told[name.strip()] = value.strip().strip('"')
    if "no-store" in told or "no-cache" in told:
        return 0
    most = _count(told.get("max-age", ""))
    return None if most is None else max(0, most - (_count(headers.get("age", "")) or 0))


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None
