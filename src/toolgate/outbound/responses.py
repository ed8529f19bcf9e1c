"""What may come back, and reading it: bounded in status, type, encoding and size."""

import zlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    import httpx2

GZIP = "gzip"


class FetchFailed(Exception):
    """Nothing usable was fetched; the message is fit for a page."""


class AddressRefused(FetchFailed):
    """The rule on addresses forbids it, and will do so the next time."""


class Unconnected(FetchFailed):
    """No connection was made: the server was asked nothing."""


class FetchTimedOut(FetchFailed):
    """There was no whole response in time."""

    def __init__(self, host: str, seconds: float) -> None:
        super().__init__(f"{host} did not answer within {seconds:g} s.")
        self.seconds = seconds


class ResponseTooLarge(FetchFailed):
    """The response has more bytes than wanted."""

    def __init__(self, host: str, most_bytes: int) -> None:
        super().__init__(f"{host} sent more than {most_bytes:,} bytes.")
        self.most_bytes = most_bytes


class UnexpectedEncoding(FetchFailed):
    """The response has a content encoding that was not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseLimits:
    """What a response may be, and how long it may take, redirects included."""

    seconds: float = 5.0
    most_bytes: int = 64 * 1024
    """Of the body; of a compressed one, also when it is unpacked."""
    statuses: Collection[int] | None = (200,)
    content_types: Sequence[str] = ()
    """Patterns, as in `application/*+json`, the usual one first; none for any."""
    redirects: int = 0
    """How many are followed, of GET and HEAD only."""
    compressed: bool = False
    """Whether gzip is asked for, and unpacked."""


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """A whole response."""

    url: str
    """Where it came from, after redirects."""
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A response whose body comes piece by piece."""

    url: str
    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    """Raises `FetchFailed` where the connection breaks or is silent for too long."""


async def read_chunks(
    response: "httpx2.Response", host: str, seconds: float
) -> AsyncIterator[bytes]:
    """The body as it comes, each piece within so many seconds."""
    import httpx2  # noqa: PLC0415

    chunks = response.aiter_raw()
    while True:
        try:
            with anyio.fail_after(seconds):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise FetchTimedOut(host, seconds) from None
        except httpx2.HTTPError as problem:
            raise FetchFailed(f"{host} ended the response before its end.") from problem
        yield chunk


async def read_body(response: "httpx2.Response", host: str, limits: ResponseLimits) -> bytes:
    """The body of a response that is still on its way; raise `FetchFailed` unless it fits."""
    _check(response, host, limits)
    unpack = zlib.decompressobj(16 + zlib.MAX_WBITS) if _encoding(response) == GZIP else None
    body, received = bytearray(), 0
    try:
        async for chunk in response.aiter_raw():
            received += len(chunk)  # gzip may go on for ever and unpack to nothing,
            left = limits.most_bytes - len(body) + 1  # or be short and unpack to a lot
            body += unpack.decompress(chunk, left) if unpack else chunk
            if max(received, len(body)) > limits.most_bytes:
                raise ResponseTooLarge(host, limits.most_bytes)
            if unpack and unpack.unused_data:
                raise FetchFailed(f"{host} did not send valid gzip: it goes on after its end.")
    except zlib.error:
        raise FetchFailed(f"{host} did not send valid gzip.") from None
    if unpack and not unpack.eof:
        raise FetchFailed(f"{host} did not send valid gzip.")
    return bytes(body)


def _check(response: "httpx2.Response", host: str, limits: ResponseLimits) -> None:
    status, types = response.status_code, limits.content_types
    if limits.statuses is not None and status not in limits.statuses:
        if response.is_redirect:
            raise FetchFailed(f"{host} answered with a redirect; redirects are not followed.")
        raise FetchFailed(f"{host} answered with status {status}.")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if types and not any(fnmatchcase(kind, one) for one in types):
        name = types[0].rpartition("/")[2].upper()
        raise FetchFailed(f"{host} did not send {name} ({types[0]}).")
    if _encoding(response) not in {"identity", GZIP if limits.compressed else "identity"}:
        raise UnexpectedEncoding(f"{host} sent a compressed answer, which was not asked for.")


def _encoding(response: "httpx2.Response") -> str:
    return response.headers.get("content-encoding", "identity").strip().lower()
