"""Tools written for another MCP server: `inputSchema` and `outputSchema` as MCP spells them."""

import json
from typing import Any

import pytest
from tests.extend.conftest import Opened
from tests.extend.upstream import Upstream
from tests.gate.tools import USER

from toolgate.extend.offer import BadTools

pytestmark = pytest.mark.anyio

# The array of a `functions/mcp.js`, as it stands there but for its comments.
SPONSORSHIP = """[
  {
    name: 'get_sponsorship',
    description: 'Get sponsorship details by ID',
    role: 'user',
    method: 'GET',
    path: 'sponsorship',
    annotations: { title: 'Get sponsorship details', readOnlyHint: true },
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'string', description: 'Sponsorship ID' },
      },
      required: ['id'],
    },
    outputSchema: {
      type: 'object',
      properties: { path: { type: 'string' } },
      required: ['path'],
    },
  },
]
"""
AS_JSON: list[dict[str, Any]] = [
    {
        "name": "get_sponsorship",
        "description": "Get sponsorship details by ID",
        "role": "user",
        "method": "GET",
        "path": "sponsorship",
        "annotations": {"title": "Get sponsorship details", "readOnlyHint": True},
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string", "description": "Sponsorship ID"}},
            "required": ["id"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    }
]
IN_PYTHON = f"""
from toolgate.extend import RouteTool

tools = [RouteTool(**one) for one in {AS_JSON!r}]
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tools.yaml", SPONSORSHIP),
        ("tools.json", json.dumps(AS_JSON, indent=2)),
        ("tools.json", json.dumps(AS_JSON)),
        ("tools.py", IN_PYTHON),
        ("tools.yaml", SPONSORSHIP.replace("inputSchema", "input_schema")),
        ("tools.yaml", SPONSORSHIP.replace("putSchema", "put_schema")),
    ],
)
async def test_a_route_of_a_backend_manager_project_works_as_it_is(
    opened: Opened, upstream: Upstream, name: str, text: str
) -> None:
    async with opened(text, name) as kit:
        tool = kit.app.gate.catalogue.find("get_sponsorship")
        assert tool is not None
        assert tool.title == "Get sponsorship details"
        assert tool.input_schema["required"] == ["id"]
        assert tool.output_schema == AS_JSON[0]["outputSchema"]
        answer = await kit.call("get_sponsorship", USER, id="s1")
        assert (answer.body["path"], answer.body["query"]) == ("/api/sponsorship", {"id": "s1"})
        assert (await kit.call("get_sponsorship", USER)).body == {"error": "id is required"}


HANDLER = """
from toolgate.extend import HandlerContext, tool


@tool(
    inputSchema={"type": "object", "properties": {"days": {"type": "number", "default": 30}}},
    outputSchema={"type": "object", "properties": {"total": {"type": "integer"}}},
)
async def newsletter_stats(ctx: HandlerContext, args):
    "Get newsletter stats for the past N days"
    return {"total": args.get("days", 30)}


tools = [newsletter_stats]
"""


async def test_a_handler_may_be_declared_with_either_spelling(opened: Opened) -> None:
    async with opened(HANDLER, "tools.py") as kit:
        assert (await kit.call("newsletter_stats", days=3)).body == {"total": 3}
        assert (await kit.call("newsletter_stats", days="x")).status == 400
        wrong = await kit.call("newsletter_stats", days=1.5)
        assert wrong.status == 502
        assert "total must be an integer" in wrong.text


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (
            "inputSchema: {type: object}, input_schema: {type: object}",
            "inputSchema and input_schema are the same key, so write one of them.",
        ),
        ("inputSchema: 5", "inputSchema must be a mapping."),
        ("outputSchema: {type: array}", 'outputSchema must have the type "object".'),
        ("output_schema: {type: array}", 'output_schema must have the type "object".'),
        ("inputSchma: {}", "unknown key 'inputSchma', write input_schema."),
    ],
)
async def test_messages_use_the_spelling_of_the_file(opened: Opened, entry: str, told: str) -> None:
    with pytest.raises(BadTools) as refused:
        async with opened(f"[{{name: it, description: It, path: echo, {entry}}}]"):
            pytest.fail("the file was taken")
    assert f"tools.yaml:1: it: {told}" in str(refused.value)
