"""What must be so before something is cancelled or refunded: one by one, over HTTP and MCP.

Each step holds everything that the steps before it asked for, and breaks all that later ones ask:
only the order can make it say its own sentence.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.packs.backend.payments.records import keep, moment, order, stored, subscription
from tests.transports.conftest import Web, opened_web
from tests.transports.mcp_requests import ERAS, message_of, tool_call

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
NO_USER = "These credentials belong to no user. Say whose subscription it is with uid."
BASIC = {"id": "basic", "name": "Basic"}
PENDING, RUNNING = {"pending": True}, {"pending": False}
YOUNG, NO_RESOURCE = {"startDate": moment(-0.9)}, {"resourceId": None}
OLD = {"startDate": moment(-181)}

NO_DETAILS = (
    "Subscription payment details not found: the user's record has no subscription.payment."
)
CANCEL: dict[str, tuple[Json, Json, int, str]] = {
    "confirmed": ({"confirmed": False}, {}, 400, "Cancellation must be confirmed"),
    "a user": ({"confirmed": True}, {}, 400, NO_USER),
    "a known user": ({"confirmed": True, "uid": "nobody"}, {}, 404, "User not found"),
    "a paid plan": (
        {"confirmed": True, "uid": "anna"},
        {"product": BASIC, "cancellation": PENDING, "payment": YOUNG | NO_RESOURCE},
        400,
        "No active paid subscription found",
    ),
    "active or suspended": (
        {"confirmed": True, "uid": "anna"},
        {"status": "cancelled", "cancellation": PENDING, "payment": YOUNG | NO_RESOURCE},
        400,
        "No active paid subscription found",
    ),
    "older than a day": (
        {"confirmed": True, "uid": "anna"},
        {"cancellation": PENDING, "payment": YOUNG | NO_RESOURCE},
        400,
        "Your subscription is still being set up. Please try again after 24-48 hours.",
    ),
    "not pending": (
        {"confirmed": True, "uid": "anna"},
        {"cancellation": PENDING, "payment": NO_RESOURCE | {"processor": "paypal"}},
        400,
        "Subscription is already pending cancellation",
    ),
    "a resource": (
        {"confirmed": True, "uid": "anna"},
        {"payment": NO_RESOURCE | {"processor": "paypal"}},
        400,
        f"{NO_DETAILS}resourceId",
    ),
    "a processor": (
        {"confirmed": True, "uid": "anna"},
        {"payment": {"processor": None}},
        400,
        f"{NO_DETAILS}processor",
    ),
    "a known processor": (
        {"confirmed": True, "uid": "anna"},
        {"payment": {"processor": "paypal"}},
        400,
        "Unknown processor: paypal",
    ),
}
WHY = {"confirmed": True, "reason": "no use"}
REFUND: dict[str, tuple[Json, Json, int, str]] = {
    "confirmed": ({"confirmed": False, "reason": "x"}, {}, 400, "Refund must be confirmed"),
    "a user": (WHY, {}, 400, NO_USER),
    "a known user": ({**WHY, "uid": "nobody"}, {}, 404, "User not found"),
    "a paid plan": (
        {**WHY, "uid": "anna"},
        {"product": BASIC, "payment": OLD | NO_RESOURCE},
        400,
        "No paid subscription found",
    ),
    "cancelled first": (
        {**WHY, "uid": "anna"},
        {"cancellation": RUNNING, "payment": OLD | NO_RESOURCE},
        400,
        "Subscription must be cancelled or pending cancellation before requesting a refund",
    ),
    "a resource": (
        {**WHY, "uid": "anna"},
        {"cancellation": PENDING, "payment": OLD | NO_RESOURCE | {"processor": "paypal"}},
        400,
        f"{NO_DETAILS}resourceId",
    ),
    "a known processor": (
        {**WHY, "uid": "anna"},
        {"cancellation": PENDING, "payment": OLD | {"processor": "paypal"}},
        400,
        "Unknown processor: paypal",
    ),
    "at most 180 days": (
        {**WHY, "uid": "anna"},
        {"cancellation": PENDING, "payment": OLD},
        400,
        "Payments older than 6 months are not eligible for refunds",
    ),
}


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder: Path = tmp_path_factory.mktemp("web")
    async with opened_web(folder, packs__enabled=["backend"]) as opened:
        yield opened


async def over_http(client: httpx2.AsyncClient, tool: str, arguments: Json) -> tuple[int, str]:
    path = f"/backend-manager/payments/{tool.partition('_')[0]}"
    answer = await client.post(path, json=arguments)
    return answer.status_code, answer.json()["error"]


async def over_mcp(client: httpx2.AsyncClient, era: str, tool: str, arguments: Json) -> Json:
    return message_of(await tool_call(era, tool, arguments).send(client))["result"]


async def refuses(web: Web, tool: str, step: tuple[Json, Json, int, str]) -> None:
    """The same sentence on every way in; nothing is changed."""
    arguments, record, status, told = step
    await keep(web.kit, "anna", subscription(**record))
    before = await stored(web.kit, "anna")
    async with web.client() as admin:
        assert await over_http(admin, tool, arguments) == (status, told)
        for era in ERAS:
            answer = await over_mcp(admin, era, tool, arguments)
            assert (answer["isError"], answer["content"][0]["text"]) == (True, told)
    assert (await stored(web.kit, "anna"), await order(web.kit)) == (before, {})


@pytest.mark.parametrize("step", CANCEL.values(), ids=CANCEL)
async def test_cancelling_needs(web: Web, step: tuple[Json, Json, int, str]) -> None:
    await refuses(web, "cancel_subscription", step)


@pytest.mark.parametrize("step", REFUND.values(), ids=REFUND)
async def test_a_refund_needs(web: Web, step: tuple[Json, Json, int, str]) -> None:
    await refuses(web, "refund_payment", step)


@pytest.mark.parametrize("confirmed", ["true", 1, None, [], {}], ids=repr)
@pytest.mark.parametrize("tool", ["cancel_subscription", "refund_payment"])
async def test_confirmed_is_a_boolean_and_comes_first(
    web: Web, tool: str, confirmed: object
) -> None:
    told = "confirmed must be true or false"
    await refuses(web, tool, ({"reason": "x", "confirmed": confirmed}, {}, 400, told))
