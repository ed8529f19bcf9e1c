"""Own tools that hand over files: a handler's model, a route's response, base64 in JSON."""

import pytest
from tests.extend.conftest import Opened
from tests.extend.upstream import Upstream

from toolgate.extend.offer import BadTools
from toolgate.transports.mcp.listing import listed_tool

pytestmark = pytest.mark.anyio

ROUTE = """
- name: get_file
  description: Get a file
  path: {path}
  output_schema:
    type: object
    properties: {{content: {{type: string, contentEncoding: base64}}, pages: {{type: integer}}}}
    required: [content]
"""
HANDLER = '''
from toolgate.extend import Attachment, HandlerContext, Input, Output, tool


class Report(Output):
    pages: int = 3
    content: {kind}


@tool({given})
async def get_report(ctx: HandlerContext, args: Input) -> Report:
    """Get the report."""
    return Report(content=Attachment.of(b"hello"))


tools = [get_report]
'''


@pytest.mark.parametrize("size", [0, 5, 5 * 1024 * 1024], ids=["empty", "small", "large"])
async def test_a_file_that_a_route_answers_is_an_attachment(
    opened: Opened, upstream: Upstream, size: int
) -> None:
    async with opened(ROUTE.format(path=f"file/{size}")) as kit:
        outcome = await kit.call("get_file")
    assert (outcome.error, outcome.body) == (None, {})
    assert outcome.attached is not None
    attachment = outcome.attached.attachment
    assert outcome.attached.data == b"x" * size
    assert (attachment.content_type, attachment.file_name) == ("image/png", "a b.png")
    assert upstream.requests[-1]["headers"]["accept"] == "*/*"


async def test_a_file_over_the_limit_is_refused(opened: Opened) -> None:
    async with opened(ROUTE.format(path="file/2049"), limits__attachment_bytes=2048) as kit:
        outcome = await kit.call("get_file")
    assert outcome.error is not None
    assert "has 2049 bytes, over the limit of 2048" in outcome.error.message


async def test_base64_in_json_is_an_attachment_too(opened: Opened) -> None:
    async with opened(ROUTE.format(path="base64/aGVsbG8=")) as kit:
        outcome = await kit.call("get_file")
        tool = kit.app.gate.catalogue.find("get_file")
    assert outcome.attached is not None
    assert (outcome.attached.data, outcome.body) == (b"hello", {"pages": 3})
    assert tool is not None
    assert list(listed_tool(tool, False)["outputSchema"]["properties"]) == ["pages"]
    assert list(tool.output_schema["properties"]) == ["content", "pages"]


async def test_what_is_not_base64_is_the_routes_fault(opened: Opened) -> None:
    async with opened(ROUTE.format(path="base64/no")) as kit:
        outcome = await kit.call("get_file")
    assert outcome.error_type == "route_failed"
    assert "content that is not base64" in outcome.body["error"]


async def test_a_route_that_promises_no_file_answers_json_alone(opened: Opened) -> None:
    async with opened("- {name: it, description: It, path: file/5}") as kit:
        outcome = await kit.call("it")
    assert outcome.body["error"] == "The route of it answered something other than JSON."


READS = 'annotations={"readOnlyHint": True}'


async def test_a_handler_hands_over_what_its_model_has(opened: Opened) -> None:
    text = HANDLER.format(kind="Attachment | None", given=READS)
    async with opened(text, "tools.py") as kit:
        outcome = await kit.call("get_report")
    assert outcome.attached is not None
    assert (outcome.attached.data, outcome.body) == (b"hello", {"pages": 3})


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("Attachment", "", "content is an attachment, so say readOnlyHint: true"),
        ("list[Attachment]", READS, "inside content: make it a field of the Output"),
        (
            "Attachment",
            READS + ', output_schema={"type": "object"}',
            "output_schema is given, but content needs the model's own",
        ),
    ],
    ids=["a write", "a list", "a schema"],
)
async def test_a_declaration_that_could_not_be_kept_is_told(
    opened: Opened, kind: str, given: str, told: str
) -> None:
    with pytest.raises(BadTools, match=told):
        async with opened(HANDLER.format(kind=kind, given=given), "tools.py"):
            pass
