"""Dates that callers write: none is read as another one, which would send mail at once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server

from toolgate.packs.backend.dates import FORMS, BadDate, read_date, read_due
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = datetime(2030, 1, 1, tzinfo=UTC)
MISREAD = ["2030", "5", "-5", "203001", "20301301", "203001010900", "1893456000000", 2030, -5, 5,
    20300101, 0, "0", "1970-01-01", "19991231", 900_000_000, "900000000", [], True]  # fmt: skip
CAMPAIGN = {"name": "x", "subject": "y", "all": True}
ROUTE = "/backend-manager/marketing/campaign"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, packs__enabled=["backend"]) as opened:
        yield opened


@pytest.mark.parametrize("text", ["20300101", " 20300101 ", "2030-01-01", "20300101T000000Z",
    "20300101T0100+0100", "1893456000", "1893456000.0", 1893456000, 1893456000.0])  # fmt: skip
def test_each_form_of_a_moment(text: Any) -> None:
    assert read_due(text, NOW) == read_date(text, NOW) == DAY


@pytest.mark.parametrize("value", [*MISREAD, "030010109000000", "\u0662\u0660\u0663\u0660", 1e300])
def test_what_could_be_misread_is_not_due(value: Any) -> None:
    with pytest.raises(BadDate):
        read_due(value, NOW)


@pytest.mark.parametrize("value", [0, "0", "1970-01-01", "19700101"])
def test_lists_begin_as_early_as_one_likes(value: Any) -> None:
    assert read_date(value, NOW).timestamp() == 0


@pytest.mark.parametrize("value", MISREAD)
async def test_nothing_is_sent_at_a_moment_that_nobody_meant(kit: Kit, value: Any) -> None:
    later = await kit.send("create_campaign", {**CAMPAIGN, "sendAt": "20300101"})
    assert (later.body["status"], later.body["sendAt"]) == ("pending", DAY.timestamp())
    mail = {"to": "a@shop.example", "subject": "x"}
    for tool, arguments in (
        ("create_campaign", CAMPAIGN),
        ("update_campaign", {"id": later.body["id"]}),
        ("send_email", mail),
    ):
        refused = await kit.send(tool, {**arguments, "sendAt": value})
        assert refused.status == 400, (tool, refused.body)
        assert refused.body["error"].startswith("sendAt ")
        assert "sendAt." not in refused.body["error"]
    listed = (await kit.call("list_campaigns")).body
    assert [(one["status"], one["sendAt"]) for one in listed["campaigns"]] == [
        ("pending", DAY.timestamp())
    ]


async def test_a_post_waits_for_a_day_without_dashes(kit: Kit) -> None:
    post = {"title": "x", "body": "y"}
    for name, value in (("later", "20300101"), ("year", "2030"), ("number", 20300101)):
        document = {"post": post, "publishAt": value, "status": "pending"}
        await kit.call("firestore_write", path=f"posts-queue/{name}", document=document)
    done = (await kit.call("run_cron", id="blog-auto-publisher")).body["result"]
    assert done == {"published": 0, "failed": 2, "waiting": 1}
    told = (await kit.call("firestore_read", path="posts-queue/year")).body["error"]
    assert told == f"publishAt {FORMS}"


def test_dates_over_the_route(server: Server) -> None:
    with server.client() as admin:
        for value in ("2030", 20300101, True, -5):
            refused = admin.post(ROUTE, json={**CAMPAIGN, "sendAt": value})
            assert (refused.status_code, refused.json()["error"]) == (400, f"sendAt {FORMS}")
        made = admin.post(ROUTE, json={**CAMPAIGN, "sendAt": "20300101"}).json()
        assert (made["status"], made["sendAt"]) == ("pending", DAY.timestamp())
        moved = admin.put(ROUTE, json={"id": made["id"], "sendAt": "20310101"}).json()
        assert moved["campaign"]["sendAt"] == datetime(2031, 1, 1, tzinfo=UTC).timestamp()
        for start, is_listed in (("0", 1), ("20300101", 1), ("20310102", 0), ("1893456000", 1)):
            listed = admin.get(ROUTE, params={"start": start, "limit": "1000"}).json()
            assert (made["id"] in [one["id"] for one in listed["campaigns"]]) == is_listed, start
        assert admin.get(ROUTE, params={"start": "2030"}).json() == {"error": f"start {FORMS}"}
