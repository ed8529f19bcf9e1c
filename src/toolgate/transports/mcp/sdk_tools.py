"""Tools, as the SDK's server asks for them."""

import json
from collections.abc import Iterator
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolgate.gate.attachments import Delivery
from toolgate.gate.errors import UnknownTool
from toolgate.gate.outcomes import Attached, Outcome
from toolgate.transports.mcp.listing import (
    MAX_DIFF_BYTES,
    contents_of,
    listed_tool,
    mirrors_headers,
)
from toolgate.transports.mcp.plain import DRY_RUN
from toolgate.transports.mcp.sdk_requests import Requests, SdkContext

BEFORE_LINKS = ("2024-11-05", "2025-03-26")


class ToolHandlers:
    """`tools/list` and `tools/call`."""

    def __init__(self, requests: Requests, *, underscore_names: bool) -> None:
        self._requests = requests
        self._underscores = underscore_names

    def mirrored_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool that wants arguments mirrored in headers; most want none."""
        tool = self._requests.gate.catalogue.find(name)
        return tool.input_schema if tool and mirrors_headers(tool) else None

    async def list_tools(
        self, raw: SdkContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools this caller may see, in the catalogue's order."""
        visible = self._requests.gate.visible(self._requests.principal(raw))
        listed = [listed_tool(tool, self._underscores) for tool in visible]
        return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in listed])

    async def call_tool(
        self, raw: SdkContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """One call through the gate."""
        requests = self._requests
        call = requests.call_of(raw, params.name, params.arguments, Delivery.LINK)
        outcome = await requests.gate.execute(call)
        if isinstance(outcome.error, UnknownTool):
            raise MCPError(types.INVALID_PARAMS, outcome.error.message)
        content: list[types.ContentBlock] = [types.TextContent(text=outcome.text)]
        if outcome.attached is not None:
            content += _contents(outcome.attached, raw.protocol_version)
        return types.CallToolResult(
            content=content,
            structured_content=_structured(outcome),
            is_error=outcome.error is not None,
            _meta=_meta(outcome),
        )


def _meta(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.diff is None:
        return None
    return {DRY_RUN: json.loads(outcome.diff.json(MAX_DIFF_BYTES))}


def _contents(attached: Attached, version: str) -> Iterator[types.ContentBlock]:
    """The attachment's link, and a short text itself.

    The link is in words for clients of versions that know no links in results.
    """
    first, *others = contents_of(attached)
    link = types.ResourceLink.model_validate(first)
    if version in BEFORE_LINKS:
        told = f"{link.name} ({link.mime_type}, {link.size} bytes) is the resource {link.uri}"
        yield types.TextContent(text=told)
    else:
        yield link
    yield from (types.EmbeddedResource.model_validate(one) for one in others)


def _structured(outcome: Outcome) -> Any:
    """The answer, where it fits the declared output schema, and older clients: a good object."""
    body: object = outcome.body
    return body if outcome.error is None and isinstance(body, dict) else None  # pyright: ignore[reportUnknownVariableType]
