"""What an MCP client is shown of the catalogue."""

from typing import Any

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.outcomes import Attached
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.gate.prompts import Prompt
from toolgate.gate.resources import Resource

NAME = "toolgate"
"""How the server calls itself."""
TRANSPORT = "mcp"
MAX_DIFF_BYTES = 65536
"""What is told of what a dry run would change; the rest is counted."""
"""How the audit names MCP over HTTP."""


def listed_tool(tool: AnyTool, underscores: bool) -> dict[str, Any]:
    """A tool as `tools/list` has it."""
    listed = {
        "name": tool.alias if underscores else tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": tool.annotations,
        **tool.more_fields,
    }
    if tool.output_schema:
        listed["outputSchema"] = tool.linked_output_schema
    return listed


def link_of(attached: Attached) -> dict[str, Any]:
    """An attachment as the content of a result."""
    attachment = attached.attachment
    return {
        "type": "resource_link",
        "uri": attached.uri,
        "name": attachment.file_name,
        "mimeType": attachment.content_type,
        "size": attachment.size,
    }


def contents_of(attached: Attached) -> list[dict[str, Any]]:
    """An attachment as contents of a result: its link, and a short text itself."""
    link = link_of(attached)
    if attached.text is None:
        return [link]
    resource = {"uri": link["uri"], "mimeType": link["mimeType"], "text": attached.text}
    return [link, {"type": "resource", "resource": resource}]


def mirrors_headers(tool: AnyTool) -> bool:
    """Whether a property of the tool's input is marked `x-mcp-header`."""
    properties: dict[str, Any] = tool.input_schema.get("properties", {})
    return any("x-mcp-header" in one for one in properties.values() if isinstance(one, dict))


def visible_resources(gate: Gate, principal: Principal) -> list[Resource]:
    """The resources whose tools exist for this caller."""
    names = {tool.name for tool in gate.visible(principal)}
    return [one for one in gate.catalogue.resources if one.tool in names]


def visible_prompts(gate: Gate, principal: Principal) -> list[Prompt]:
    """The prompts whose tools exist for this caller; one that names none is for everybody."""
    names = {tool.name for tool in gate.visible(principal)}
    return [one for one in gate.catalogue.prompts.values() if names.issuperset(one.tools)]
