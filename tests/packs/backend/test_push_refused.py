"""Firebase refuses midway: the run fails, goes on when it is retried, and rings no phone twice."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.packs.backend.fcm_server import MISMATCH, UNREGISTERED, FcmServer, fcm_server
from tests.packs.backend.test_push_delivery import subscribe, tokens_left

from toolgate.packs.backend.push.workflow import JOINED_FOR
from toolgate.ports.documents import Delete
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.declarations import RunRecord, RunStatus, utc_now

pytestmark = pytest.mark.anyio

HELLO = {"title": "Hello", "body": "World"}
TOKENS = [f"t{number:04}" for number in range(1201)]
ONCE = Counter(dict.fromkeys(TOKENS, 1))


@pytest.fixture
def fcm() -> Iterator[FcmServer]:
    with fcm_server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, fcm: FcmServer) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {
        "database__url": database_url,
        "packs__enabled": ["backend"],
        **fcm.settings(),
    }
    async with opened_kit(tmp_path, **settings) as opened:
        await subscribe(opened, TOKENS)
        yield opened


async def send(kit: Kit) -> Any:
    return await kit.call("send_notification", notification=HELLO)


async def runs(kit: Kit) -> list[RunRecord]:
    return await kit.app.site_of("backend").workflows.list("send-notification")


async def retry(kit: Kit, run: str) -> RunRecord:
    """As `toolgate workflows retry` does."""
    workflows = kit.app.site_of("backend").workflows
    async with kit.app.gate.database.transaction() as tx:
        await workflows.runs.retry(tx, run)
    return await workflows.wait(run)


async def refused_midway(kit: Kit, fcm: FcmServer) -> RunRecord:
    fcm.refuse_after = 700
    told = await send(kit)
    (run,) = await runs(kit)
    assert told.status == 503
    assert "may not send messages" in told.text
    assert "700 of 1201 messages were sent." in told.text
    assert f"`toolgate workflows retry {run.id}` sends the rest" in told.text
    assert (run.status, run.result) == (RunStatus.FAILED, None)
    assert run.error is not None
    assert "700 of 1201" in run.error
    (ended,) = [row for row in await kit.audit_rows() if row["tool_name"] == "workflows.end"]
    assert (ended["status"], ended["error_type"]) == ("error", "failed")
    fcm.refuse_after = None
    return run


async def test_a_run_that_was_refused_midway_goes_on_when_it_is_retried(
    kit: Kit, fcm: FcmServer
) -> None:
    run = await retry(kit, (await refused_midway(kit, fcm)).id)
    assert fcm.sent == ONCE
    assert run.status is RunStatus.SUCCEEDED
    assert run.result is not None
    told = [run.result[name] for name in ("subscribers", "batches", "sent", "deleted", "failed")]
    assert told == [1201, 3, 1201, 0, {}]


async def test_the_same_call_again_goes_on_and_sends_nothing_anew(kit: Kit, fcm: FcmServer) -> None:
    await refused_midway(kit, fcm)
    answers: list[Any] = []

    async def once_more() -> None:
        answers.append(await send(kit))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(once_more)
    assert fcm.sent == ONCE
    assert len(await runs(kit)) == 1
    whole = {"subscribers": 1201, "batches": 3, "sent": 1201, "deleted": 0}
    assert [one.body for one in answers] == [whole] * 3
    # What has succeeded is over: the same words can be sent once more.
    await send(kit)
    assert set(fcm.sent.values()) == {2}


async def test_a_retried_run_is_joined_while_it_goes_on(kit: Kit, fcm: FcmServer) -> None:
    run = await refused_midway(kit, fcm)
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.site_of("backend").workflows.runs.retry(tx, run.id)
    assert (await send(kit)).status == 200
    assert (fcm.sent, len(await runs(kit))) == (ONCE, 1)


async def test_another_text_and_another_day_are_another_notification(
    kit: Kit, fcm: FcmServer
) -> None:
    await refused_midway(kit, fcm)
    other = await kit.call("send_notification", notification={**HELLO, "body": "Else"})
    assert (other.body["sent"], len(await runs(kit))) == (1201, 2)
    kit.app.site_of("backend").workflows.runs.clock = lambda: utc_now() + JOINED_FOR
    later = await send(kit)
    assert (later.body["sent"], len(await runs(kit))) == (1201, 3)
    assert timedelta() < JOINED_FOR < timedelta(days=1)


async def test_refused_again_and_again_nothing_is_sent_twice(kit: Kit, fcm: FcmServer) -> None:
    run = await refused_midway(kit, fcm)
    for most in (700, 730, 1100):
        fcm.refuse_after = most
        failed = await retry(kit, run.id)
        assert failed.status is RunStatus.FAILED
        assert f"{most} of 1201 messages were sent." in (failed.error or "")
    fcm.refuse_after = None
    assert (await send(kit)).body["sent"] == 1201
    assert fcm.sent == ONCE


async def test_who_unsubscribed_meanwhile_and_dead_tokens(kit: Kit, fcm: FcmServer) -> None:
    fcm.of_token = {"t0600": MISMATCH, "t1200": UNREGISTERED, "t0001": UNREGISTERED}
    fcm.refuse_after = 600
    told = await send(kit)
    assert "600 of 1201" in told.text
    unsent = [one for one in TOKENS[500:1000] if one not in fcm.sent and one != "t0600"]
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(
            tx, *(Delete("notifications", one) for one in unsent)
        )
    fcm.refuse_after = None
    done = await send(kit)
    assert set(fcm.sent.values()) == {1}
    assert not set(unsent) & fcm.sent.keys()
    assert done.body["deleted"] == 2
    assert done.body["failed"] == {"SENDER_ID_MISMATCH": 1}
    assert done.body["sent"] == len(fcm.sent) == 1201 - len(unsent) - 3
    assert not {"t0001", "t1200"} & set(await tokens_left(kit))


async def test_without_a_token_server_the_run_fails(kit: Kit, fcm: FcmServer) -> None:
    fcm.token_answer = (400, {"error": "invalid_grant"})
    told = await send(kit)
    (run,) = await runs(kit)
    assert (told.status, run.status) == (503, RunStatus.FAILED)
    assert re.search(r"invalid_grant.* 0 of 1201 messages were sent", told.text)
    fcm.token_answer = None
    again = await send(kit)
    assert again.body == {"subscribers": 1201, "batches": 3, "sent": 1201, "deleted": 0}
    assert (fcm.sent, len(await runs(kit))) == (ONCE, 1)
