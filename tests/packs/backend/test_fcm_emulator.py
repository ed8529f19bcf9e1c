"""Our client against an emulator of Firebase Cloud Messaging that others wrote.

It shows that somebody else reads our messages as we mean them. It says nothing about failures: it
takes every access token, every project and every device's token, and never names FCM's own error
codes. `fcm_server.py` does; access tokens come from there.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from tests.packs.backend.fcm_emulator.emulator import fcm_emulator
from tests.packs.backend.fcm_server import PROJECT, fcm_server

from toolgate.outbound.client import Outbound
from toolgate.outbound.service_accounts import ServiceAccount
from toolgate.packs.backend.push.fcm import SCOPES, FcmPush
from toolgate.packs.backend.push.port import Delivery, Notification

pytestmark = pytest.mark.anyio

HELLO = Notification(
    title="Hello",
    body="Wörld",
    icon="https://x.io/icon.png",
    image="https://x.io/image.png",
    click_action="https://x.io/?cb=1",
)


@pytest.fixture(scope="module")
def emulator() -> Iterator[str]:
    with fcm_emulator() as url:
        yield url


@pytest.fixture
async def push(emulator: str) -> AsyncIterator[FcmPush]:
    with fcm_server() as accounts:
        async with Outbound() as outbound:
            account = ServiceAccount(outbound, accounts.account(), SCOPES)
            yield FcmPush(outbound, account, PROJECT, emulator)


def inbox(url: str) -> list[dict[str, Any]]:
    answer = httpx2.get(f"{url}/internal/messages", trust_env=False)
    answer.raise_for_status()
    return answer.json()["messages"]


async def test_it_reads_each_message_as_it_is_meant(push: FcmPush, emulator: str) -> None:
    tokens = [f"device-{number}" for number in range(120)]
    results = await push.send(HELLO, tokens)
    assert [(one.token, one.delivery) for one in results] == [
        (one, Delivery.SENT) for one in tokens
    ]
    got = {one["token"]: one for one in inbox(emulator)}
    assert sorted(got) == sorted(tokens)
    assert len(inbox(emulator)) == len(tokens), "none twice"
    one = got["device-7"]
    assert one["projectId"] == PROJECT
    shown = {"title": "Hello", "body": "Wörld", "image": "https://x.io/image.png"}
    assert (one["notification"], one["data"]) == (shown, {"click_action": "https://x.io/?cb=1"})
    web = {
        "notification": {"icon": "https://x.io/icon.png"},
        "fcm_options": {"link": "https://x.io/?cb=1"},
    }
    assert one["webpush"] == web


async def test_a_message_it_refuses_blames_no_token(push: FcmPush, emulator: str) -> None:
    before = len(inbox(emulator))
    [one] = await push.send(HELLO, [""])
    assert (one.delivery, one.reason) == (Delivery.FAILED, "INVALID_ARGUMENT")
    assert len(inbox(emulator)) == before
