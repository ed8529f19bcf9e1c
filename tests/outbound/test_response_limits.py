"""What a response may be is said by who asks: status, type, encoding, size, time."""

import gzip
import threading
import zlib
from collections.abc import Iterator

import pytest
from tests.identity.publisher import Answer, Publisher
from tests.outbound.patient import patient

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    FetchTimedOut,
    ResponseLimits,
    ResponseTooLarge,
    UnexpectedEncoding,
)

pytestmark = pytest.mark.anyio


async def fetched(published: Publisher, answer: Answer, limits: ResponseLimits) -> FetchedResponse:
    published.answers["/it"] = answer
    async with Outbound() as outbound:
        return await outbound.fetch(
            f"{published.url}/it", limits, address_policy=AddressPolicy.DIRECT
        )


@pytest.mark.parametrize("most", [0, 10, 100_000])
async def test_a_body_may_have_as_many_bytes_as_wanted_and_not_one_more(
    most: int, published: Publisher
) -> None:
    limits = patient(most_bytes=most)
    assert len((await fetched(published, Answer(b"x" * most), limits)).body) == most
    with pytest.raises(ResponseTooLarge, match=f"more than {most:,} bytes"):
        await fetched(published, Answer(b"x" * (most + 1)), limits)


async def test_a_response_that_drips_ends_in_time(published: Publisher) -> None:
    over = threading.Event()

    def dripping() -> Iterator[bytes]:
        while not over.wait(0.01):
            yield b" "

    try:
        with pytest.raises(FetchTimedOut, match=r"did not answer within 0\.2 s"):
            await fetched(published, Answer(dripping()), patient(seconds=0.2))
    finally:
        over.set()


async def test_redirects_share_the_time_of_the_request(published: Publisher) -> None:
    published.answers["/it"] = Answer({}, 302, {"Location": "/it"})
    limits = patient(seconds=0.3, redirects=1_000_000)
    async with Outbound() as outbound:
        with pytest.raises(FetchTimedOut, match=r"within 0\.3 s"):
            await outbound.fetch(f"{published.url}/it", limits, address_policy=AddressPolicy.DIRECT)


@pytest.mark.parametrize(
    ("wanted", "sent", "fits"),
    [
        ((), "text/html", True),
        (("text/html",), "Text/HTML; charset=utf-8", True),
        (("text/*", "application/json"), "text/plain", True),
        (("text/*", "application/json"), "image/png", False),
        (("text/html",), "", False),
        (("text/html",), "text/htmlx", False),
    ],
)
async def test_a_content_type_fits_a_pattern_or_is_refused(
    wanted: tuple[str, ...], sent: str, fits: bool, published: Publisher
) -> None:
    answer = Answer(b"body", headers={"Content-Type": sent})
    limits = patient(content_types=wanted)
    if fits:
        assert (await fetched(published, answer, limits)).body == b"body"
    else:
        with pytest.raises(FetchFailed, match=r"127\.0\.0\.1 did not send .*\(text/"):
            await fetched(published, answer, limits)


@pytest.mark.parametrize("status", [201, 204, 404, 503])
async def test_a_status_is_wanted_or_refused(status: int, published: Publisher) -> None:
    answer = Answer(b"", status)
    assert (await fetched(published, answer, patient(statuses=[status]))).status == status
    assert (await fetched(published, answer, patient(statuses=None))).status == status
    with pytest.raises(FetchFailed, match=f"answered with status {status}"):
        await fetched(published, answer, patient())


def packed(body: bytes, encoding: str = "gzip") -> Answer:
    return Answer(body, headers={"Content-Encoding": encoding})


async def test_gzip_is_unpacked_when_it_is_asked_for(published: Publisher) -> None:
    limits = patient(compressed=True)
    answer = packed(gzip.compress(b"plain"), "GZIP")
    assert (await fetched(published, answer, limits)).body == b"plain"
    assert published.seen[0].headers["accept-encoding"] == "gzip"
    assert (await fetched(published, Answer(b"plain"), limits)).body == b"plain"


async def test_what_was_not_asked_for_is_not_unpacked(published: Publisher) -> None:
    with pytest.raises(UnexpectedEncoding, match="not asked for"):
        await fetched(published, packed(gzip.compress(b"plain")), patient())
    assert published.seen[0].headers["accept-encoding"] == "identity"
    with pytest.raises(UnexpectedEncoding, match="not asked for"):
        await fetched(published, packed(b"", "br"), patient(compressed=True))


async def test_a_bomb_is_not_unpacked_beyond_the_bound(published: Publisher) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    with pytest.raises(ResponseTooLarge, match="more than 65,536 bytes"):
        await fetched(published, packed(bomb), patient(compressed=True))


def endless(first: bytes, rest: bytes, sent: list[int]) -> Iterator[bytes]:
    """A body without an end; it stops where nobody reads, and at 20 MB for the test's own sake."""
    sent.append(len(first))
    yield first
    while sum(sent) < 20_000_000:
        sent.append(len(rest))
        yield rest


async def test_nothing_is_read_after_the_end_of_gzip(published: Publisher) -> None:
    sent = list[int]()
    body = endless(gzip.compress(b"plain"), b"junk", sent)
    answer = Answer(body, headers={"Content-Encoding": "gzip"})
    with pytest.raises(FetchFailed, match="valid gzip"):
        await fetched(published, answer, patient(compressed=True))
    assert sum(sent) < 20_000_000


async def test_gzip_that_unpacks_to_nothing_is_bounded(published: Publisher) -> None:
    sent, packer = list[int](), zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    first = packer.compress(b"plain") + packer.flush(zlib.Z_FULL_FLUSH)
    empty_block = b"\x00\x00\x00\xff\xff"
    body = endless(first, empty_block * 10_000, sent)
    answer = Answer(body, headers={"Content-Encoding": "gzip"})
    with pytest.raises(ResponseTooLarge, match="more than 65,536 bytes"):
        await fetched(published, answer, patient(compressed=True))
    assert sum(sent) < 20_000_000


@pytest.mark.parametrize("body", [b"no gzip", b"", gzip.compress(b"plain" * 100)[:-9]])
async def test_broken_gzip_is_refused(body: bytes, published: Publisher) -> None:
    with pytest.raises(FetchFailed, match="valid gzip"):
        await fetched(published, packed(body), patient(compressed=True))
