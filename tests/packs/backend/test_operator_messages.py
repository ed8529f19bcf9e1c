"""What operators are told who look at the outboxes with something that cannot be."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("operator.email.list", {"status": "gone"}, ["status", "waiting", "queued", "unknown"]),
        ("operator.email.list", {"limit": 0}, ["limit", "1"]),
        ("operator.email.list", {"limit": 101}, ["limit", "100"]),
        ("operator.email.list", {"cursor": "x"}, ["cursor"]),
        ("operator.email.list", {"colour": 1}, ["colour"]),
        ("operator.email.deliver", {"id": 5}, ["id"]),
        ("operator.email.resolve", {}, ["ids", "taken"]),
        ("operator.email.resolve", {"ids": [], "taken": True}, ["ids"]),
        ("operator.email.resolve", {"ids": ["a"], "taken": "maybe"}, ["taken"]),
        ("operator.notification.list", {"limit": 0}, ["limit", "1"]),
        ("operator.notification.list", {"limit": 1000}, ["limit", "100"]),
        ("operator.notification.list", {"cursor": "x"}, ["cursor"]),
    ],
)
async def test_bad_arguments_are_named_with_what_may_be(
    kit: Kit, tool: str, given: dict[str, Any], told: list[str]
) -> None:
    refused = await kit.send(tool, given)
    assert refused.status == 400
    (message,) = refused.body.values()
    assert isinstance(message, str)
    for word in told:
        assert word in message
    assert "Traceback" not in message
    assert "\n" not in message


async def test_a_mail_that_is_not_there_is_told_by_its_id(kit: Kit) -> None:
    missing = await kit.call("operator.email.deliver", id="nope")
    assert (missing.status, missing.body) == (404, {"error": "No mail nope waits in the outbox."})
