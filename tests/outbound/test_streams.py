"""Responses that are read as they come."""

import threading
from collections.abc import Iterator

import pytest
from tests.identity.publisher import Answer, Publisher
from tests.patience import PATIENT

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchFailed, FetchTimedOut

pytestmark = pytest.mark.anyio
DIRECT = AddressPolicy.DIRECT


async def test_each_piece_is_there_before_the_next_is_sent(published: Publisher) -> None:
    go_on = threading.Semaphore(0)

    def pieces() -> Iterator[bytes]:
        for piece in (b"one", b"two", b"three"):
            yield piece
            assert go_on.acquire(timeout=PATIENT)

    published.answers["/it"] = Answer(pieces(), 203)
    read: list[bytes] = []
    async with (
        Outbound() as outbound,
        outbound.stream(
            f"{published.url}/it", seconds=PATIENT, address_policy=DIRECT, headers={"X-Its": "own"}
        ) as response,
    ):
        assert response.status == 203
        assert response.headers["content-type"] == "application/json"
        async for chunk in response.chunks:
            read.append(chunk)
            go_on.release()
    assert b"".join(read) == b"onetwothree"
    assert len(read) == 3
    assert published.seen[0].headers["x-its"] == "own"


async def test_a_redirect_is_handed_over_and_not_followed(published: Publisher) -> None:
    published.answers["/it"] = Answer(b"", 307, {"Location": "/elsewhere"})
    async with (
        Outbound() as outbound,
        outbound.stream(f"{published.url}/it", seconds=PATIENT, address_policy=DIRECT) as response,
    ):
        assert (response.status, response.headers["location"]) == (307, "/elsewhere")
    assert published.asked("/elsewhere") == 0


async def test_a_server_that_is_silent_for_too_long_fails(published: Publisher) -> None:
    over = threading.Event()

    def pieces() -> Iterator[bytes]:
        yield b"one"
        over.wait(PATIENT)

    published.answers["/it"] = Answer(pieces())

    async def read() -> None:
        async with (
            Outbound() as outbound,
            outbound.stream(f"{published.url}/it", seconds=0.5, address_policy=DIRECT) as response,
        ):
            async for _ in response.chunks:
                pass

    try:
        with pytest.raises(FetchTimedOut, match=r"within 0\.5 s"):
            await read()
    finally:
        over.set()


async def test_a_stream_to_a_private_address_is_refused_as_every_request_is(
    published: Publisher,
) -> None:
    async with Outbound() as outbound:
        with pytest.raises(FetchFailed, match="must begin with https"):
            async with outbound.stream(f"{published.url}/it", seconds=PATIENT):
                pytest.fail("it was reached")
    assert published.seen == []


async def test_a_server_that_is_not_there_fails() -> None:
    async with Outbound() as outbound:
        with pytest.raises(FetchFailed, match="could not be reached"):
            async with outbound.stream(
                "http://127.0.0.1:1/", seconds=PATIENT, address_policy=DIRECT
            ):
                pytest.fail("it was reached")
