"""A caller that is gone: what was committed stays, with one row."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from toolgate.db import grouped_writes
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio


async def test_a_call_cancelled_in_its_commit_leaves_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        callers: list[asyncio.Task[object]] = []
        loop = asyncio.get_running_loop()
        commit = grouped_writes.commit_group

        def cancelled_meanwhile(connection: Connection, writes: Sequence[Any]) -> None:
            loop.call_soon_threadsafe(callers[0].cancel)
            commit(connection, writes)

        monkeypatch.setattr(grouped_writes, "commit_group", cancelled_meanwhile)
        call = kit.call("create_document", collection="apps", document_id="x", data={"a": 1})
        callers.append(asyncio.create_task(call))
        with pytest.raises(asyncio.CancelledError):
            await callers[0]
        monkeypatch.undo()
        rows = await kit.audit_rows()
        assert [(row["tool_name"], row["status"]) for row in rows] == [
            ("create_document", "success")
        ]
        found = await kit.call("get_document", collection="apps", document_id="x")
        assert found.body == {"id": "x", "a": 1}
