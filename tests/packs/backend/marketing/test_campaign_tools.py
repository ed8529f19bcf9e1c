"""Campaigns through the gate: what is stored, what is refused, and in which words."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.effort import effort
from tests.servers import Server

from toolgate.gate.principal import of_person
from toolgate.packs.backend.marketing.segments import SEGMENTS
from toolgate.packs.backend.world import BackendWorld
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

SALE = {"name": "Sale", "subject": "15 % off", "segments": ["subscription_free"]}
LATER = "2031-05-01T10:00:00Z"
LATER_UNIX = 1935396000


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(
        tmp_path, writes=True, packs__enabled=["backend"], database__url=database_url
    ) as kit:
        yield kit


async def create(kit: Kit, **given: Any) -> dict[str, Any]:
    made = await kit.send("create_campaign", {**SALE, "sendAt": LATER, **given})
    assert made.error is None, made.body
    return made.body


async def kept(kit: Kit, id: str) -> dict[str, Any]:
    return (await kit.call("list_campaigns", id=id)).body["campaign"]


async def test_one_for_later_waits(kit: Kit) -> None:
    made = await create(kit)
    assert made == {
        "success": True,
        "id": made["id"],
        "status": "pending",
        "sendAt": LATER_UNIX,
        "providers": {"outbox": {"status": "pending"}},
    }
    campaign = await kept(kit, made["id"])
    assert campaign["settings"] == SALE | {"template": "card", "sender": "marketing"}
    assert (campaign["type"], campaign["status"]) == ("email", "pending")
    assert campaign["metadata"]["created"]["timestampUNIX"] > 0


@pytest.mark.parametrize("date", [LATER, LATER_UNIX, str(LATER_UNIX), "2031-05-01T12:00:00+02:00"])
async def test_dates_in_each_form_mean_the_same(kit: Kit, date: Any) -> None:
    assert (await create(kit, sendAt=date))["sendAt"] == LATER_UNIX


@pytest.mark.parametrize("date", ["tomorow", "2031-13-01", True, 1e18])
async def test_a_date_nobody_can_read_is_refused(kit: Kit, date: Any) -> None:
    refused = await kit.send("create_campaign", {**SALE, "sendAt": date})
    assert refused.status == 400
    assert "sendAt" in refused.body["error"]
    assert (await kit.call("list_campaigns")).body["count"] == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"segments": None}, "say who gets the campaign"),
        ({"segments": []}, "say who gets the campaign"),
        ({"segments": ["everybody"]}, "there is no segment 'everybody'"),
        ({"excludeSegments": ["nobody"]}, "there is no segment 'nobody'"),
        ({"sender": "boss"}, "there is no sender of this name"),
        ({"data": {"content": {"button": {"url": "javascript:alert(1)"}}}}, "must be a URL"),
        ({"subject": "hi\r\nBcc: evil@example.com"}, "must be one line"),
        ({"type": "fax"}, "type"),
        ({"name": ""}, "name"),
    ],
)
async def test_what_would_go_wrong_is_refused_before_it_is_stored(
    kit: Kit, given: dict[str, Any], told: str
) -> None:
    refused = await kit.send("create_campaign", {**SALE, "sendAt": LATER, **given})
    assert refused.status == 400
    assert told in refused.body["error"]
    assert (await kit.call("list_campaigns")).body["count"] == 0


async def test_a_segment_that_there_is_not_is_told_with_those_there_are(kit: Kit) -> None:
    refused = await kit.send("create_campaign", {**SALE, "segments": ["x"]})
    assert all(name in refused.body["error"] for name in SEGMENTS)


async def test_a_test_needs_somebody_to_send_it_to(kit: Kit) -> None:
    refused = await kit.send("create_campaign", {**SALE, "test": True})
    assert refused.status == 400
    assert "brand.contact" in refused.body["error"]


async def test_lists_are_in_order_and_filtered(kit: Kit) -> None:
    first = await create(kit, sendAt=LATER_UNIX + 10)
    second = await create(kit, sendAt=LATER_UNIX, type="push")
    same = [await create(kit, sendAt=LATER_UNIX + 20) for _ in range(3)]
    listed = (await kit.call("list_campaigns")).body
    expected = [second["id"], first["id"], *sorted(one["id"] for one in same)]
    assert [one["id"] for one in listed["campaigns"]] == expected
    assert (listed["success"], listed["count"]) == (True, 5)

    async def ids(**wanted: Any) -> list[str]:
        return [one["id"] for one in (await kit.call("list_campaigns", **wanted)).body["campaigns"]]

    assert await ids(type="push") == [second["id"]]
    assert await ids(status="sent") == []
    assert await ids(limit=2) == expected[:2]
    assert await ids(start=LATER_UNIX + 1, end=LATER_UNIX + 19) == [first["id"]]
    assert await ids(start="2031-05-01T10:00:01Z", end="2031-05-01T10:00:19Z") == [first["id"]]


@pytest.mark.parametrize("limit", [0, -1, 10**9, "5"])
async def test_limits_out_of_range_are_refused(kit: Kit, limit: Any) -> None:
    refused = await kit.call("list_campaigns", limit=limit)
    assert refused.status == 400
    assert "limit" in refused.body["error"]


async def test_one_that_is_not_there(kit: Kit) -> None:
    for tool in ("list_campaigns", "update_campaign", "delete_campaign"):
        missing = await kit.call(tool, id="nope")
        assert (missing.status, missing.body) == (404, {"error": "Campaign not found"})


@pytest.mark.parametrize("tool", ["update_campaign", "delete_campaign"])
@pytest.mark.parametrize("given", [{}, {"id": ""}])
async def test_the_id_is_asked_for(kit: Kit, tool: str, given: dict[str, Any]) -> None:
    refused = await kit.send(tool, given)
    assert (refused.status, refused.body) == (400, {"error": "Campaign ID is required"})


async def test_an_update_leaves_what_is_not_given(kit: Kit) -> None:
    made = await create(kit, preheader="Only today")
    before = (await kit.call("list_campaigns", id=made["id"])).body["campaign"]
    untouched = await kit.call("update_campaign", id=made["id"])
    assert untouched.body["campaign"] == before, "nothing to change"
    updated = await kit.call("update_campaign", id=made["id"], subject="20 % off")
    assert updated.error is None
    campaign = await kept(kit, made["id"])
    assert campaign["sendAt"] == LATER_UNIX
    assert campaign["settings"]["subject"] == "20 % off"
    assert campaign["settings"]["preheader"] == "Only today"
    assert updated.body == {"success": True, "campaign": campaign}


async def test_an_update_may_not_leave_nobody(kit: Kit) -> None:
    made = await create(kit)
    refused = await kit.call("update_campaign", id=made["id"], segments=[])
    assert refused.status == 400
    assert (await kept(kit, made["id"]))["settings"]["segments"] == SALE["segments"]


async def test_deleted_is_gone(kit: Kit) -> None:
    made = await create(kit)
    deleted = await kit.call("delete_campaign", id=made["id"])
    assert deleted.body == {"success": True, "deleted": made["id"]}
    assert (await kit.call("delete_campaign", id=made["id"])).status == 404


@pytest.mark.parametrize("status", ["processing", "sent", "failed"])
@pytest.mark.parametrize("verb", ["edit", "delete"])
async def test_what_is_being_sent_stays(kit: Kit, status: str, verb: str) -> None:
    made = await create(kit)
    path = f"marketing-campaigns/{made['id']}"
    await kit.call("firestore_write", path=path, document={"status": status})
    tool = "update_campaign" if verb == "edit" else "delete_campaign"
    refused = await kit.call(tool, id=made["id"])
    message = f'Cannot {verb} campaign with status "{status}"'
    assert (refused.status, refused.body) == (400, {"error": message})


async def test_a_dry_run_stores_nothing_and_starts_nothing(kit: Kit) -> None:
    done = await kit.send("create_campaign", {**SALE, "sendAt": "now"}, dry_run=True)
    assert done.error is None
    assert (await kit.call("list_campaigns")).body["count"] == 0
    world: Any = kit.app.worlds["backend"].world
    assert await world.workflows.runs.list() == []


async def test_only_admins_see_them(kit: Kit) -> None:
    for tool in ("list_campaigns", "create_campaign", "update_campaign", "delete_campaign"):
        assert (await kit.call(tool, of_person("abc123"))).body == {
            "error": f"Unknown tool: {tool}"
        }


async def test_edits_and_the_beginning_exclude_each_other(kit: Kit) -> None:
    world: BackendWorld = kit.app.worlds["backend"].world
    for number in range(effort(20, 200)):
        made = await create(kit, sendAt=LATER_UNIX)
        due = {"sendAt": 1, "status": "pending"}
        path = f"marketing-campaigns/{made['id']}"
        await kit.call("firestore_write", path=path, document=due)
        edited, _ = await asyncio.gather(
            kit.call("update_campaign", id=made["id"], subject=f"edit {number}"),
            world.marketing.begin_due(),
        )
        campaign = await kept(kit, made["id"])
        if edited.error is None:
            assert campaign["settings"]["subject"] == f"edit {number}"
        else:
            message = 'Cannot edit campaign with status "processing"'
            assert edited.body == {"error": message}
            assert campaign["settings"]["subject"] == SALE["subject"]
        await world.marketing.begin_due()
        assert (await kept(kit, made["id"]))["status"] != "pending"


async def test_demo_campaigns_are_there_and_none_is_due(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True, packs__enabled=["backend"]) as kit:
        listed = (await kit.call("list_campaigns", status="pending")).body["campaigns"]
        assert {one["id"] for one in listed} == {
            "_recurring-sale-free",
            "_recurring-sale-churned-trial",
            "_recurring-sale-churned-paid",
            "_recurring-sale-cancelled",
            "_recurring-newsletter",
        }
        world: Any = kit.app.worlds["backend"].world
        assert await world.marketing.begin_due() == {"begun": 0, "settled": 0}
        for one in listed:
            path = f"marketing-campaigns/{one['id']}"
            await kit.call("firestore_write", path=path, document={"sendAt": 1})
        assert await world.marketing.begin_due() == {"begun": 5, "settled": 0}
        again = (await kit.call("list_campaigns")).body["campaigns"]
        history = [one for one in again if one.get("recurringId")]
        assert len(again) == 10
        assert {one["status"] for one in history} == {"processing"}
        assert all(one["sendAt"] > 1 for one in again if not one.get("recurringId"))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"a": 10**30}, "data must hold only integers of at most 64 bits"),
        ({"a": float("inf")}, "data must hold only finite numbers"),
        ({"a": "x\0"}, "data must not contain a NUL character"),
        ({"a": "\ud800"}, "data must be valid Unicode text"),
        ({"a": [[1]]}, "data must not hold a list directly inside a list"),
        ({"__x__": 1}, "data must not have a field like '__x__' that begins and ends with '__'"),
        ({"": 1}, "data must not have a field without a name"),
        ({"a": "x" * 140_000}, "data must have at most 131072 bytes as JSON"),
    ],
)
async def test_data_is_what_a_document_may_hold(kit: Kit, data: Any, told: str) -> None:
    made = await create(kit)
    for tool, given in (
        ("create_campaign", {**SALE, "sendAt": LATER}),
        ("update_campaign", {"id": made["id"]}),
    ):
        refused = await kit.send(tool, {**given, "data": data})
        assert (refused.status, refused.body["error"]) == (400, told)
    assert (await kit.call("list_campaigns")).body["count"] == 1
    assert "data" not in (await kept(kit, made["id"]))["settings"]


async def test_a_code_that_texts_repeat_is_short(kit: Kit) -> None:
    content = {"message": "{discount.code}" * 1000, "discountCode": "x" * 101}
    refused = await kit.send(
        "create_campaign", {**SALE, "sendAt": LATER, "data": {"content": content}}
    )
    told = "data.content.discountCode must have at most 100 characters"
    assert (refused.status, refused.body["error"]) == (400, told)


def test_delete_takes_the_id_from_the_query_or_the_body(server: Server) -> None:
    path = "/backend-manager/marketing/campaign"
    with server.client() as admin:
        for number in range(2):
            made = admin.post(path, json={**SALE, "sendAt": LATER}).json()
            given: Any = {"params": {"id": made["id"]}} if number else {"json": {"id": made["id"]}}
            deleted = admin.request("DELETE", path, **given)
            assert (deleted.status_code, deleted.json()) == (
                200,
                {"success": True, "deleted": made["id"]},
            )
            assert admin.request("DELETE", path, **given).status_code == 404


async def test_a_recurrence_nobody_can_read_stops_no_other_campaign(kit: Kit) -> None:
    world: Any = kit.app.worlds["backend"].world
    odd, fine = await create(kit), await create(kit)
    changes = {
        odd["id"]: {"sendAt": 1, "recurrence": {"pattern": "hourly"}},
        fine["id"]: {"sendAt": 2},
    }
    for id, document in changes.items():
        await kit.call("firestore_write", path=f"marketing-campaigns/{id}", document=document)
    assert (await world.marketing.begin_due())["begun"] == 1
    failed = await kept(kit, odd["id"])
    patterns = "daily, weekly, monthly, monthly-weekday, quarterly, yearly"
    words = f"recurrence cannot be read: its pattern is one of {patterns}"
    assert (failed["status"], failed["error"]) == ("failed", words)
    assert (await kept(kit, fine["id"]))["status"] != "pending"


async def test_a_recurring_one_that_was_deleted_never_fires_again(kit: Kit) -> None:
    made = await create(kit)
    path = f"marketing-campaigns/{made['id']}"
    world: Any = kit.app.worlds["backend"].world
    daily = {"pattern": "daily"}
    await kit.call("firestore_write", path=path, document={"sendAt": 1, "recurrence": daily})
    assert (await world.marketing.begin_due())["begun"] == 1
    assert (await kept(kit, made["id"]))["status"] == "pending", "it waits for its next date"
    await kit.call("firestore_write", path=path, document={"sendAt": 1})
    assert (await kit.call("delete_campaign", id=made["id"])).error is None
    assert (await world.marketing.begin_due())["begun"] == 0
