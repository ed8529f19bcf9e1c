"""Firebase Cloud Messaging against a server that speaks it: results, failures, tokens of access."""

import json
import re
import socket
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.packs.backend.fcm_server import (
    INTERNAL,
    INVALID_LINK,
    INVALID_TOKEN,
    MISMATCH,
    PROJECT,
    QUOTA,
    UNAVAILABLE,
    UNREGISTERED,
    FcmServer,
    error,
    fcm_server,
)

from toolgate.outbound.client import Outbound
from toolgate.outbound.service_accounts import BadServiceAccount, ServiceAccount, account_info
from toolgate.packs.backend.push.fcm import IN_FLIGHT, SCOPES, FcmPush
from toolgate.packs.backend.push.port import Delivery, Notification, PushUnavailable

pytestmark = pytest.mark.anyio

HELLO = Notification(title="Hello", body="World")


@pytest.fixture
def server() -> Iterator[FcmServer]:
    with fcm_server() as running:
        yield running


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound() as opened:
        yield opened


class Waits(list[float]):
    """Waits no time, and knows how long it would have been."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def push_to(server: FcmServer, outbound: Outbound, *, clock: Any = None, **more: Any) -> FcmPush:
    known = {} if clock is None else {"clock": clock}
    account = ServiceAccount(outbound, server.account(), SCOPES, **known)
    return FcmPush(outbound, account, PROJECT, server.url, **{"sleep": Waits(), **more})


async def test_each_token_gets_one_message_with_all_that_was_said(
    server: FcmServer, outbound: Outbound
) -> None:
    push = push_to(server, outbound)
    whole = Notification(
        title="T",
        body="B",
        icon="https://x.io/i.png",
        image="https://x.io/b.png",
        click_action="https://x.io/?cb=1",
    )
    results = await push.send(whole, ["a", "b", "a"])
    assert [(one.token, one.delivery) for one in results] == [
        (token, Delivery.SENT) for token in ("a", "b", "a")
    ]
    assert server.sent == {"a": 1, "b": 1}
    assert server.messages[0] == {
        "token": server.messages[0]["token"],
        "notification": {"title": "T", "body": "B", "image": "https://x.io/b.png"},
        "data": {"click_action": "https://x.io/?cb=1"},
        "webpush": {
            "notification": {"icon": "https://x.io/i.png"},
            "fcm_options": {"link": "https://x.io/?cb=1"},
        },
    }


async def test_only_what_is_said_of_the_token_makes_it_gone(
    server: FcmServer, outbound: Outbound
) -> None:
    server.of_token = {
        "old": UNREGISTERED,
        "bad": INVALID_TOKEN,
        "busy": UNAVAILABLE,
        "foreign": MISMATCH,
        "broken": INTERNAL,
        "link": INVALID_LINK,
        "garbage": (200, b"<html>"),
        "odd": (418, b""),
    }
    tokens = ["fine", *server.of_token]
    results = await push_to(server, outbound).send(HELLO, tokens)
    assert [(one.delivery.value, one.reason) for one in results] == [
        ("sent", None),
        ("gone", "UNREGISTERED"),
        ("gone", "INVALID_REGISTRATION_TOKEN"),
        ("failed", "UNAVAILABLE"),
        ("failed", "SENDER_ID_MISMATCH"),
        ("failed", "INTERNAL"),
        ("failed", "INVALID_ARGUMENT"),
        ("unknown", "UNREADABLE_ANSWER"),
        ("failed", "STATUS_418"),
    ]


async def test_a_batch_is_sent_many_at_a_time_within_bounds(
    server: FcmServer, outbound: Outbound
) -> None:
    results = await push_to(server, outbound).send(HELLO, [f"t{one}" for one in range(500)])
    assert {one.delivery for one in results} == {Delivery.SENT}
    assert len(server.sent) == len(server.messages) == 500
    assert 2 <= server.most_at_once <= IN_FLIGHT
    assert server.token_requests == 1


async def test_what_is_busy_is_asked_again_as_it_says(
    server: FcmServer, outbound: Outbound
) -> None:
    server.of_all = UNAVAILABLE
    waits = Waits()
    [busy] = await push_to(server, outbound, sleep=waits).send(HELLO, ["a"])
    assert (busy.reason, waits, server.requests) == ("UNAVAILABLE", [1.0, 2.0], 3)
    server.headers["retry-after"] = "7"
    waits.clear()
    await push_to(server, outbound, sleep=waits).send(HELLO, ["a"])
    assert waits == [7.0, 7.0]
    server.headers["retry-after"] = "600"
    waits.clear()
    await push_to(server, outbound, sleep=waits).send(HELLO, ["a"])
    assert waits == [], "nobody waits for ten minutes"


async def test_a_quota_that_is_used_up_is_not_strained(
    server: FcmServer, outbound: Outbound
) -> None:
    server.of_all = QUOTA
    [limited] = await push_to(server, outbound).send(HELLO, ["a"])
    assert (limited.delivery, limited.reason) == (Delivery.FAILED, "QUOTA_EXCEEDED")
    assert server.requests == 1


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (error(401, "UNAUTHENTICATED"), "refuses the service account"),
        (error(403, "PERMISSION_DENIED"), f"may not send messages of project {PROJECT}"),
        (error(404, "NOT_FOUND"), f"knows no project {PROJECT}"),
        ((404, b"<html>"), f"knows no project {PROJECT}"),
    ],
)
async def test_what_concerns_every_message_ends_the_batch_and_blames_no_token(
    server: FcmServer, outbound: Outbound, answer: Any, told: str
) -> None:
    server.of_all = answer
    with pytest.raises(PushUnavailable, match=told) as refused:
        await push_to(server, outbound).send(HELLO, [f"t{one}" for one in range(500)])
    assert all(one.delivery is Delivery.FAILED for one in refused.value.results)
    assert server.requests <= 3 * IN_FLIGHT


async def test_a_server_that_is_gone_is_not_asked_for_every_token(
    server: FcmServer, outbound: Outbound
) -> None:
    push = push_to(server, outbound)
    await push.account.token()
    gone = FcmPush(outbound, push.account, PROJECT, "http://127.0.0.1:9")
    with pytest.raises(PushUnavailable, match="cannot be reached"):
        await gone.send(HELLO, [f"t{one}" for one in range(500)])


async def test_only_without_a_connection_is_a_message_surely_not_sent(
    server: FcmServer, outbound: Outbound
) -> None:
    push = push_to(server, outbound)
    await push.account.token()
    with cutting_server() as url:
        cut = FcmPush(outbound, push.account, PROJECT, url)
        [one] = await cut.send(HELLO, ["a"])
    assert (one.delivery, one.reason) == (Delivery.UNKNOWN, "CONNECTION_LOST")
    gone = FcmPush(outbound, push.account, PROJECT, "http://127.0.0.1:9")
    [one] = await gone.send(HELLO, ["a"])
    assert (one.delivery, one.reason) == (Delivery.FAILED, "UNREACHABLE")


@contextmanager
def cutting_server() -> Generator[str]:
    """Reads a request, and ends the connection without a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def cut() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)

        thread = threading.Thread(target=cut)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


async def test_a_server_that_says_nothing_is_left_in_time(
    server: FcmServer, outbound: Outbound
) -> None:
    server.silent = True
    push = push_to(server, outbound, seconds=0.2)
    [one] = await push.send(HELLO, ["a"])
    assert (one.delivery, one.reason) == (Delivery.UNKNOWN, "TIMED_OUT")
    with pytest.raises(PushUnavailable, match="does not answer in time") as refused:
        await push.send(HELLO, [f"t{one}" for one in range(500)])
    assert len(refused.value.results) < 2 * IN_FLIGHT


async def test_a_token_of_access_is_kept_until_shortly_before_its_end(
    server: FcmServer, outbound: Outbound
) -> None:
    now = [1_900_000_000.0]
    push = push_to(server, outbound, clock=lambda: now[0])
    for later, asked in ((0, 1), (3299, 1), (3300, 2), (3301, 2)):
        now[0] = 1_900_000_000.0 + later
        await push.send(HELLO, ["a"])
        assert server.token_requests == asked, later


async def test_a_token_that_was_taken_back_is_replaced_once(
    server: FcmServer, outbound: Outbound
) -> None:
    push = push_to(server, outbound)
    await push.send(HELLO, ["a"])
    server.token = "ya29.newer"
    assert [one.delivery for one in await push.send(HELLO, ["b"])] == [Delivery.SENT]
    assert (server.token_requests, server.sent) == (2, {"a": 1, "b": 1})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            (400, {"error": "invalid_grant", "error_description": "x"}),
            r"no access token \(invalid_grant\)",
        ),
        ((200, b"<html>"), "no access token. Check"),
        ((200, {"access_token": 5}), "no access token. Check"),
    ],
)
async def test_an_account_that_gets_no_token_is_told(
    server: FcmServer, outbound: Outbound, answer: Any, told: str
) -> None:
    server.token_answer = answer
    with pytest.raises(PushUnavailable, match=told):
        await push_to(server, outbound).send(HELLO, ["a"])
    with pytest.raises(PushUnavailable, match=told):
        await push_to(server, outbound).check()
    assert server.requests == 0


async def test_a_token_server_that_is_not_there_is_told(outbound: Outbound) -> None:
    nowhere = FcmServer(url="http://127.0.0.1:9")
    with pytest.raises(PushUnavailable, match="token server of the service account"):
        await push_to(nowhere, outbound).send(HELLO, ["a"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("secret", "not a JSON object"),
        ("[]", "not a JSON object"),
        (json.dumps({"private_key": "secret"}), "has no client_email"),
        (json.dumps({"client_email": "a@b"}), "has no private_key"),
        (json.dumps({"client_email": "a@b", "private_key": "secret"}), "private_key"),
    ],
)
def test_what_is_no_service_account_is_told_without_its_secret(text: str, told: str) -> None:
    with pytest.raises(BadServiceAccount, match=re.escape(told)) as refused:
        ServiceAccount(Outbound(), account_info(text), SCOPES)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None
