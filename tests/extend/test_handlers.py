"""Handlers in a user's tools.py."""

import logging

import pytest
from tests.extend.conftest import Opened
from tests.extend.upstream import Upstream
from tests.gate.tools import USER

from toolgate.ports.documents import Query

pytestmark = pytest.mark.anyio

TOOLS = '''
from __future__ import annotations

from pydantic import BaseModel, Field

from toolgate.extend import HandlerContext, Input, NotFound, RouteTool, tool


class Days(Input):
    """How far back."""

    days: int = Field(default=30, ge=1, description="Days to look back.")


class Stats(BaseModel):
    total: int
    who: str | None
    request: str


@tool(role="user", annotations={"readOnlyHint": True})
async def newsletter_stats(ctx: HandlerContext, args: Days) -> Stats:
    """Get newsletter stats for the past N days."""
    found = await ctx.documents.query("users")
    ctx.logger.warning("looked back %d days", args.days)
    return Stats(total=len(found) + args.days, who=ctx.principal.user_id, request=ctx.request_id)


@tool(
    name="ask",
    description="Ask the backend",
    input_schema={"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
    output_schema={"type": "object", "properties": {"status": {"type": "integer"}}},
)
async def ask_backend(ctx, args):
    answer = await ctx.http.get(args["url"])
    return {"status": answer.status_code if "bad" not in args["url"] else "no number"}


@tool()
async def missing(ctx: HandlerContext, args) -> dict:
    """Never finds anything."""
    if await ctx.documents.get("users", "abc123"):
        raise NotFound("There is nothing here.")
    raise ValueError("secret")


@tool(role="user", annotations={"readOnlyHint": True})
async def misshapen(ctx: HandlerContext, args) -> Stats:
    """Answers something else than it says."""
    return {"total": "private words", "who": None}


tools = [
    misshapen,
    newsletter_stats,
    ask_backend,
    missing,
    RouteTool(name="echo", description="Echo", path="echo"),
]
'''


async def test_a_typed_handler(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        tool = kit.app.gate.catalogue.find("newsletter_stats")
        assert tool is not None
        assert tool.title == "Newsletter stats"
        assert tool.description == "Get newsletter stats for the past N days."
        assert tool.input_schema["properties"]["days"]["description"] == "Days to look back."
        assert tool.output_schema["required"] == ["total", "who", "request"]
        with caplog.at_level(logging.WARNING):
            outcome = await kit.call("newsletter_stats", USER)
        wrong = await kit.call("newsletter_stats", USER, days=0, dayz=1)
    assert outcome.body == {"total": 30, "who": "u1", "request": "test"}
    assert "looked back 30 days" in caplog.text
    assert wrong.status == 400
    assert "days must be at least 1" in wrong.body["error"]
    assert "Did you mean 'days'?" in wrong.body["error"]


async def test_a_handler_reads_the_documents_of_the_application(opened: Opened) -> None:
    async with opened(TOOLS, "tools.py", demo_data=True) as kit:
        counted = await kit.call("newsletter_stats", USER)
        users = await kit.app.documents.of("appdata").query(Query("users"))
        others = await kit.app.documents.of("backend").query(Query("users"))
    assert counted.body["total"] == 30 + len(users)
    assert len(users) != len(others)


async def test_a_handler_with_plain_schemas_calls_out(opened: Opened, upstream: Upstream) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        good = await kit.call("ask", url=f"{upstream.url}/status/404")
        bad = await kit.call("ask", url=f"{upstream.url}/bad")
        wrong = await kit.call("ask")
    assert good.body == {"status": 404}
    assert bad.status == 502
    assert "status must be an integer" in bad.body["error"]
    assert wrong.body == {"error": "url is required"}
    assert "authorization" not in upstream.requests[0]["headers"]


async def test_a_defect_of_a_handler_is_kept_from_the_caller(opened: Opened) -> None:
    async with opened(TOOLS, "tools.py", demo_data=True) as kit:
        told = await kit.call("missing")
    assert told.status == 404
    assert told.body == {"error": "There is nothing here."}


async def test_an_unexpected_error_is_internal(opened: Opened) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        told = await kit.call("missing")
        rows = await kit.audit_rows()
    assert told.status == 500
    assert "secret" not in told.body["error"]
    assert rows[0]["error_type"] == "internal_error"


async def test_routes_and_handlers_stand_side_by_side(opened: Opened) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        own = [tool for tool in kit.app.gate.catalogue if tool.pack.name == "own"]
        assert [(tool.name, tool.family) for tool in own] == [
            ("misshapen", "handlers"),
            ("newsletter_stats", "handlers"),
            ("ask", "handlers"),
            ("missing", "handlers"),
            ("echo", "routes"),
        ]
        assert (await kit.call("echo")).body["path"] == "/api/echo"


async def test_an_answer_of_the_wrong_shape_is_told_without_its_values(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        told = await kit.call("misshapen", USER)
    assert told.status == 502
    assert told.body == {
        "error": "misshapen answered what Stats does not allow: total is not valid."
    }
    assert "misshapen failed: ValidationError (request id test)" in caplog.messages
    assert "private words" not in caplog.text


async def test_the_log_says_where_a_handler_failed_and_nothing_of_its_values(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(TOOLS, "tools.py") as kit:
        for _ in range(3):
            await kit.call("missing")
    line = 1 + TOOLS.splitlines().index('    raise ValueError("secret")')
    [told] = caplog.messages
    assert told.startswith("missing failed: ValueError in ")
    assert told.endswith(f"tools.py:{line} (request id test)")
    assert "secret" not in caplog.text
