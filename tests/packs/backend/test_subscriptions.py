"""`get_subscription`: one's own, others' for admins, and no word on who else there is."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server

from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.demo import DEMO
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

NEVER = {"timestamp": "1970-01-01T00:00:00.000Z", "timestampUNIX": 0}
BASIC = {
    "product": {"id": "basic", "name": "Basic"},
    "status": "active",
    "expires": NEVER,
    "trial": {"claimed": False, "expires": NEVER},
    "cancellation": {"pending": False, "date": NEVER},
    "payment": {"processor": None, "frequency": None, "startDate": NEVER},
}
ANNA = of_role(Role.USER, "key:1", "anna")


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, database__url=database_url, demo_data=True) as opened:
        yield opened


async def keep(kit: Kit, uid: str, record: dict[str, Any]) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Create("users", uid, record))


async def test_a_user_without_one_has_the_defaults(kit: Kit) -> None:
    for given in ({}, {"uid": "anna"}, {"uid": None}):
        outcome = await kit.send("get_subscription", given, as_=ANNA)
        assert (outcome.status, outcome.body) == (200, {"subscription": BASIC})


async def test_another_and_an_unknown_user_are_refused_in_the_same_words(kit: Kit) -> None:
    for uid in ("_test-premium-active", "nobody", "a/b", ".."):
        outcome = await kit.call("get_subscription", as_=ANNA, uid=uid)
        assert (outcome.status, outcome.body) == (403, {"error": "Admin required"})


async def test_an_admin_gets_anybodys(kit: Kit) -> None:
    outcome = await kit.call("get_subscription", uid="_test-premium-cancelling")
    subscription = outcome.body["subscription"]
    assert subscription["product"] == {"id": "premium", "name": "Premium"}
    assert subscription["cancellation"]["pending"] is True
    assert subscription["payment"]["processor"] == "test"
    for uid in ("nobody", "a/b", "__x__"):
        outcome = await kit.call("get_subscription", uid=uid)
        assert (outcome.status, outcome.body) == (404, {"error": "User not found"})


async def test_a_user_whose_record_says_admin_gets_their_own_without_a_uid(kit: Kit) -> None:
    root = of_role(Role.ADMIN, "key:2", "_test-premium-active")
    body = (await kit.call("get_subscription", as_=root)).body
    assert body["subscription"]["product"]["id"] == "premium"


async def test_a_key_of_nobody_is_told_to_name_a_user(kit: Kit) -> None:
    outcome = await kit.call("get_subscription")
    assert outcome.status == 400
    assert outcome.body["error"] == "Give the uid of a user: these credentials belong to none."


async def test_neither_order_nor_resource_nor_price_is_told(kit: Kit) -> None:
    for _, uid, record in DEMO:
        outcome = await kit.call("get_subscription", uid=uid)
        assert outcome.status == 200
        payment = record["subscription"]["payment"]
        assert set(outcome.body["subscription"]["payment"]) == {
            "processor",
            "frequency",
            "startDate",
        }
        for name in ("orderId", "resourceId"):
            assert payment[name] is None or payment[name] not in outcome.text


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "premium",
        [],
        {"product": "premium", "status": 5, "expires": "soon", "trial": [], "payment": None},
        {"expires": {"timestamp": 5, "timestampUNIX": "x"}, "cancellation": {"pending": "yes"}},
        {"expires": {"timestamp": "2026", "timestampUNIX": True}, "payment": {"processor": 5}},
        {"expires": {}, "more": 1, "payment": {"frequency": [], "startDate": None}},
    ],
)
async def test_a_record_of_another_shape_has_the_defaults(kit: Kit, stored: Any) -> None:
    await keep(kit, "anna", {"subscription": stored})
    assert (await kit.call("get_subscription", as_=ANNA)).body == {"subscription": BASIC}


def test_the_route_answers_what_the_tool_answers(server: Server) -> None:
    route, uid = "/backend-manager/user/subscription", "_test-premium-active"
    with server.client() as admin:
        answer = admin.get(route, params={"uid": uid})
        assert answer.status_code == 200
        assert answer.content == admin.post("/v1/tools/get_subscription", json={"uid": uid}).content
        assert answer.json()["subscription"]["status"] == "active"
        assert admin.get(route).status_code == 400
        assert admin.get(route, params={"uid": "nobody"}).json() == {"error": "User not found"}
    with server.client("user") as user:
        assert user.get(route).json() == {"subscription": BASIC}
        foreign = user.get(route, params={"uid": uid})
        unknown = user.get(route, params={"uid": "nobody"})
        assert (foreign.status_code, foreign.json()) == (403, {"error": "Admin required"})
        assert (unknown.status_code, unknown.content) == (403, foreign.content)


@pytest.mark.parametrize(
    ("stored", "told"),
    [(0, 0), (1700000000, 1700000000), (1700000000.75, 1700000000), (1e300, 0), (-1e300, 0)],
    ids=str,
)
async def test_seconds_are_whole_numbers(kit: Kit, stored: float, told: int) -> None:
    moment = {"timestamp": "2023-11-14T22:13:20.000Z", "timestampUNIX": stored}
    await keep(kit, "anna", {"subscription": {"expires": moment}})
    outcome = await kit.call("get_subscription", as_=ANNA)
    seconds = outcome.body["subscription"]["expires"]["timestampUNIX"]
    assert (seconds, type(seconds)) == (told, int), "0 and 0.0 are equal, and not the same JSON"
