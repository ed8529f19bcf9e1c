"""The log says where a defect is, once a minute, and nothing of arguments and results."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter
from tests.gate.tools import Said, a_tool, offer

from toolgate.gate.attachments import Attachment
from toolgate.gate.failures import FailureLog, origin
from toolgate.gate.tool import Input, Output
from toolgate.testing import opened_kit
from toolgate.testing.kit import ADMIN
from toolgate.transports.mcp.sdk_requests import Caller
from toolgate.transports.mcp.server import ErrorMask

pytestmark = pytest.mark.anyio

SECRET = "only-for-the-caller"


class Text(Input):
    it: str


async def quotes_in_a_library(ctx: Any, args: Text) -> Said:
    TypeAdapter(int).validate_python(args.it)
    return Said()


async def looks_up(ctx: Any, args: Text) -> Said:
    return Said(found={}[args.it])


async def fails_together(ctx: Any, args: Text) -> Said:
    raise ExceptionGroup(args.it, [KeyError(args.it)])


HANDLERS = {
    "ValidationError": quotes_in_a_library,
    "KeyError": looks_up,
}


@pytest.mark.parametrize("kind", HANDLERS)
async def test_a_defect_has_one_line_with_its_place_and_no_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    handler = HANDLERS[kind]
    async with opened_kit(tmp_path, plugins=offer(a_tool("it.fails", handler, takes=Text))) as kit:
        for _ in range(3):
            outcome = await kit.call("it.fails", it=SECRET)
    assert outcome.status == 500
    line = handler.__code__.co_firstlineno + 1
    [told] = caplog.records
    assert told.levelno == logging.ERROR
    assert told.getMessage() == (f"it.fails failed: {kind} in {__file__}:{line} (request id test)")
    assert SECRET not in caplog.text


class Picture(Output):
    title: str
    content: Attachment
    sizes: dict[str, int]


async def writes(ctx: Any, args: Text) -> Said:
    return Said(found=ctx.tx)


async def hands_over_bytes(ctx: Any, args: Text) -> Picture:
    given: Any = {"title": "x", "content": args.it.encode(), "sizes": {args.it: args.it}}
    return Picture(**given)


SAYING: dict[str, tuple[Any, int, str]] = {
    "a write of a tool that reads": (
        writes, 1, "NotAWrite in {}: ctx.tx is for tools declared WRITE or DESTROY, and this one "
        "reads",
    ),
    "fields of a model": (
        hands_over_bytes, 2, "ValidationError in {}: field content (is_instance_of), field sizes "
        "(int_parsing)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SAYING)
async def test_a_mistake_of_a_handlers_author_is_told_in_full_and_without_values(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    handler, after, told = SAYING[what]
    async with opened_kit(tmp_path, plugins=offer(a_tool("it.fails", handler, takes=Text))) as kit:
        assert (await kit.call("it.fails", it=SECRET)).status == 500
    place = f"{__file__}:{handler.__code__.co_firstlineno + after}"
    assert caplog.messages == [f"it.fails failed: {told.format(place)} (request id test)"]
    assert SECRET not in caplog.text


async def test_arguments_that_are_not_named_are_told_how(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        wrong: Any = {"city": "Rome"}
        with pytest.raises(TypeError, match=r"takes arguments by name, as in kit\.call"):
            await kit.call("list_collections", wrong)


async def test_the_whole_traceback_is_there_for_who_asks_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "toolgate")
    async with opened_kit(tmp_path, plugins=offer(a_tool("it.fails", looks_up, takes=Text))) as kit:
        await kit.call("it.fails", it=SECRET)
    assert SECRET in caplog.text


def test_an_error_that_was_never_raised_has_a_type_only() -> None:
    assert origin(KeyError(SECRET)) == "KeyError"


async def test_of_a_group_of_errors_the_first_is_named() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await fails_together(None, Text(it=SECRET))
    assert origin(caught.value) == "KeyError"


def test_a_different_place_is_another_line(caplog: pytest.LogCaptureFixture) -> None:
    log = FailureLog()
    for error in (KeyError(SECRET), KeyError(SECRET), ValueError(SECRET)):
        log.defect("one", "it.fails", error)
    assert caplog.messages == [
        "it.fails failed: KeyError (request id one)",
        "it.fails failed: ValueError (request id one)",
    ]


async def test_an_mcp_request_that_fails_outside_of_a_call_tells_nothing_either(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def get_prompt(raw: Any, params: Any) -> None:
        raise KeyError(SECRET)

    masked = ErrorMask(FailureLog(), lambda _: Caller(ADMIN, "r1"))(get_prompt)
    for _ in range(2):
        with pytest.raises(MCPError, match="Internal error"):
            await masked(cast(Any, None), None)
    line = get_prompt.__code__.co_firstlineno + 1
    assert caplog.messages == [
        f"MCP get_prompt failed: KeyError in {__file__}:{line} (request id r1)"
    ]
    assert SECRET not in caplog.text
