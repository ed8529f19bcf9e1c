"""Tools that join what is under way never answer with what has ended."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.test_push_delivery import subscribe

from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

AT_ONCE = 4


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


async def at_once(kit: Kit, tool: str, **arguments: Any) -> list[Any]:
    answers = await asyncio.gather(*(kit.call(tool, **arguments) for _ in range(AT_ONCE)))
    return [one.body for one in answers]


async def test_a_backup_that_is_asked_for_now_is_no_older_one(kit: Kit) -> None:
    older = (await kit.call("create_backup")).body["name"]
    names = [body["name"] for body in await at_once(kit, "create_backup")]
    assert older not in names


async def test_work_that_is_asked_for_now_is_no_run_that_ended(kit: Kit) -> None:
    ended = (await kit.call("run_cron", id="daily/reset-usage")).body["run"]
    runs = [body["run"] for body in await at_once(kit, "run_cron", id="daily/reset-usage")]
    assert ended not in runs


async def test_a_notification_is_not_answered_with_what_became_of_another(kit: Kit) -> None:
    await subscribe(kit, ["a", "b"])
    await subscribe(kit, ["c"], tags=["news"])
    before = {"title": "Before", "body": "To a few."}
    sent = await kit.call("send_notification", notification=before, filters={"tags": ["news"]})
    assert sent.body["subscribers"] == 1
    now = {"title": "Now", "body": "To all."}
    told = await at_once(kit, "send_notification", notification=now)
    assert [body["subscribers"] for body in told] == [3] * AT_ONCE
