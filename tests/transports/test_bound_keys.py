"""A bound key over HTTP: the first request, and those on a connection that knows its head."""

from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.gate.tools import Said, a_tool, offer
from tests.needed_packs import needs_pack
from tests.transports.conftest import opened_web
from tests.transports.lines import Line, known, written
from tests.transports.mcp_requests import LEGACY, MODERN, tool_call

from toolgate.gate.principal import AgentType
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Input

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]


class OfTask(Input):
    task_id: Annotated[str, Scoped("task")]


async def finds(ctx: Any, args: OfTask) -> Said:
    return Said.model_validate({"found": args.task_id})


@needs_pack("orchestrator")  # whose rules let agents call a tool of this name
@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_a_known_head_is_bound_like_one_that_is_new(tmp_path: Path, era: str) -> None:
    tool = a_tool("artifact.list", finds, takes=OfTask, not_found="Task not found")
    async with opened_web(tmp_path, offer(tool)) as web:
        keys = web.kit.app.keys
        for task in ("t1", "t2"):
            made = await keys.create(agent_type=AgentType.WORKER, bound={"task_id": task})
            web.keys[task] = made.key
        own = written(web, tool_call(era, "artifact.list", {"task_id": "t1"}), "t1")
        other = written(web, tool_call(era, "artifact.list", {"task_id": "t2"}), "t1")
        line = Line(web)
        await known(line, own)
        for _ in range(2):
            assert b'"found":"t1"' in (await line.ask_alone(own)).body.replace(b"\\", b"")
            assert b"Task not found" in (await line.ask_alone(other)).body
        theirs = written(web, tool_call(era, "artifact.list", {"task_id": "t2"}), "t2")
        assert b'"found":"t2"' in (await line.ask(theirs)).body.replace(b"\\", b"")
        rows = [row for row in await web.kit.audit_rows() if row["tool_name"] == "artifact.list"]
        tried = {(row["rule"], row["task_id"]) for row in rows}
        assert tried == {
            ("worker-does-its-task", "t1"),
            ("worker-does-its-task", "t2"),
            ("out-of-scope", "t2"),
        }
