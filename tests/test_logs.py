"""What a server's log says: level and form by setting, calls on demand, never an argument."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.gate.tools import USER, Said, a_tool, offer

from toolgate import logs
from toolgate.extend.context import ToolLogger
from toolgate.gate.tool import Effect, Input
from toolgate.sections import LogSettings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

SECRET = "s3cret-4f1d"


Lines = Callable[[], list[str]]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Iterator[Lines]:
    """The lines of standard error; afterwards the loggers are as they were."""
    root, ours = logging.getLogger(), logging.getLogger(logs.OURS)
    before = root.level, root.handlers[:], ours.level
    yield lambda: capsys.readouterr().err.splitlines()
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    ours.setLevel(before[2])


def tool_logger() -> ToolLogger:
    return ToolLogger(logging.getLogger("toolgate.own.greet"), {"request_id": "r1"})


def test_a_tool_of_ones_own_is_heard_from_level_info_with_its_request(written: Lines) -> None:
    logs.set_up(LogSettings())
    tool_logger().debug("not this")
    tool_logger().info("greeted %s", "Jane", extra={"greetings": 2})
    (line,) = written()
    assert line.endswith(" INFO toolgate.own.greet: greeted Jane greetings=2 request_id=r1")


def test_libraries_tell_only_warnings_whatever_the_level(written: Lines) -> None:
    logs.set_up(LogSettings(level="debug"))
    logging.getLogger("some.library").info("a body: %s", SECRET)
    tool_logger().debug("this")
    (line,) = written()
    assert line.endswith(" DEBUG toolgate.own.greet: this request_id=r1")


def test_a_message_cannot_make_up_a_second_record(written: Lines) -> None:
    logs.set_up(LogSettings())
    tool_logger().info("one\n2026-01-01 00:00:00,000 ERROR toolgate: made up\x1b[31m\r")
    _, second = written()
    assert second.startswith("  2026")
    assert "\x1b" not in second


def test_json_is_one_object_a_line_with_everything_that_was_given(written: Lines) -> None:
    logs.set_up(LogSettings(format="json"))
    try:
        raise ValueError("two\nlines")
    except ValueError:
        tool_logger().exception("failed\nbadly", extra={"at": Path("x")})
    (line,) = written()
    told = json.loads(line)
    assert told["level"] == "error"
    assert told["logger"] == "toolgate.own.greet"
    assert told["message"] == "failed\nbadly"
    assert (told["request_id"], told["at"]) == ("r1", "x")
    assert "ValueError" in told["exception"]


async def test_every_call_is_logged_on_demand_and_never_with_what(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolgate.requests")
    async with opened_kit(tmp_path, writes=True, log__requests=True) as kit:
        await kit.call("get_document", collection="apps", document_id=SECRET)
        await kit.call("create_document", collection="apps", document_id=SECRET, data={"a": SECRET})
        await kit.call("create_document", USER, collection="apps", data={})
    told: list[Any] = [one for one in caplog.records if one.name == "toolgate.requests"]
    shown = [(one.getMessage(), one.principal, one.decision, one.status) for one in told]
    assert shown == [
        ("get_document", "test-admin", "allow", "not_found"),
        ("create_document", "test-admin", "allow", "success"),
        ("create_document", "a-user", "deny", "not_found"),
    ]
    assert all(one.request_id == "test" and one.milliseconds >= 0 for one in told)
    assert SECRET not in caplog.text + str([one.__dict__ for one in told])


async def test_no_call_is_logged_unless_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with opened_kit(tmp_path) as kit:
        await kit.call("list_collections")
    assert not [one for one in caplog.records if one.name == "toolgate.requests"]


# When the database fails ----------------------------------------------------------------------

STATEMENTS = {
    "a key that is there": "INSERT INTO documents (collection, id, fields) VALUES ('c', :it, '{}')",
    "no such number": "SELECT CAST(:it AS integer)",
    "no such search": "SELECT * FROM content_entities_fts WHERE content_entities_fts MATCH :it",
    "no such table": "INSERT INTO nowhere VALUES (:it)",
    "not JSON": "SELECT json_extract(:it, '$')",
    "not JSON here": "SELECT CAST(:it AS json)",
}


class Text(Input):
    it: str


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
async def test_no_value_is_in_the_log_when_a_statement_fails(
    tmp_path: Path, database_url: str, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "toolgate")

    async def fails(ctx: Any, args: Text) -> Said:
        for _ in range(2):
            await ctx.tx.run(lambda c: c.execute(text(statement), {"it": args.it}))
        return Said()

    tool = a_tool("artifact.put", fails, effect=Effect.WRITE, takes=Text)
    async with opened_kit(tmp_path, plugins=offer(tool), database__url=database_url) as kit:
        outcome = await kit.call("artifact.put", it=f'{SECRET}"')
        if outcome.error:
            assert outcome.status in (500, 503)
            assert caplog.text
    assert SECRET not in caplog.text + outcome.text
