"""A connection on which more came than was asked for is never used again."""

from pathlib import Path

import pytest
from tests.extend.conftest import Opened
from tests.extend.raw_backend import Answer, raw_backend, response
from tests.identity.certificates import contexts

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import ResponseLimits

pytestmark = pytest.mark.anyio

TOOL = "[{name: ask, description: Ask the route., path: ask}]"
GOOD, FORGED = b'{"answer": "good"}', b'{"answer": "of somebody else"}'


def one_too_many(number: int) -> list[bytes]:
    """The first request is answered twice."""
    return [response(GOOD), response(FORGED)] if number == 1 else [response(GOOD)]


def a_body_too_long(number: int) -> list[bytes]:
    """The first answer is longer than it says."""
    return [response(GOOD) + b" " * 9] if number == 1 else [response(GOOD)]


def clean(number: int) -> list[bytes]:
    return [response(GOOD)]


@pytest.mark.parametrize(
    ("answer", "connections"), [(one_too_many, 2), (a_body_too_long, 2), (clean, 1)]
)
async def test_bytes_behind_an_answer_are_no_answer_to_the_next_call(
    opened: Opened, answer: Answer, connections: int
) -> None:
    with raw_backend(answer) as backend:
        async with opened(TOOL, extend__base_url=f"http://127.0.0.1:{backend.port}") as kit:
            for _ in range(3):
                assert (await kit.send("ask", {})).body == {"answer": "good"}
    assert len(backend.requests) == 3
    assert backend.connections == connections


@pytest.mark.parametrize(("answer", "connections"), [(one_too_many, 2), (clean, 1)])
async def test_nor_are_those_of_a_tls_record_that_nobody_has_read(
    tmp_path: Path, answer: Answer, connections: int
) -> None:
    server, client = contexts("localhost", tmp_path)
    with raw_backend(answer, server) as backend:
        async with Outbound(tls=client) as outbound:
            for _ in range(3):
                url = f"https://localhost:{backend.port}/ask"
                fetched = await outbound.fetch(
                    url, ResponseLimits(seconds=20), address_policy=AddressPolicy.DIRECT
                )
                assert fetched.body == GOOD
    assert len(backend.requests) == 3
    assert backend.connections == connections
