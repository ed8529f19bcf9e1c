"""Finds the page of a topic, among those that the caller may read."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

import orjson

from toolgate.gate.tool import Tool

MAX_BYTES = 64 * 1024
OVERVIEW = "overview"
AnyTool = Tool[Any, Any, Any]
NEEDS = {
    "tasks": "db",
    "preferences": "db",
    "settings": "db",
    "skills": "skills",
    "nodes": "node",
    "artifacts": "artifact",
}
"""The group of tools that a guide speaks of; who sees none of them does not read it."""
CUT = "\n\n… The page goes on; ask for a single tool to see its part.\n"


@cache
def guides() -> dict[str, str]:
    """The guides by name."""
    folder = resources.files(__package__ or "")
    return {
        file.name.removesuffix(".md"): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".md")
    }


def page_of(topic: str, tools: Sequence[AnyTool]) -> tuple[str, str] | None:
    """The path of a topic's page and its text, for somebody who sees these tools."""
    for tool in tools:
        if topic in (tool.name, tool.alias):
            return f"tools/{tool.name}", bounded(tool_page(tool))
    if topic in readable(tools):
        return f"guides/{topic}", bounded(guide(topic, tools))
    group = [tool for tool in tools if tool.namespace == topic]
    if group:
        return f"groups/{topic}", bounded(group_page(topic, group))
    return None


def page_at(path: str, tools: Sequence[AnyTool]) -> tuple[str, str] | None:
    """The page at a path, and its text."""
    found = page_of(path.partition("/")[2], tools)
    return found if found is not None and found[0] == path else None


def topics(tools: Sequence[AnyTool]) -> list[str]:
    """What somebody who sees these tools finds help on."""
    spaces = dict.fromkeys(tool.namespace for tool in tools)
    return [*(tool.name for tool in tools), *readable(tools), *spaces]


def readable(tools: Sequence[AnyTool]) -> list[str]:
    """The guides for somebody who sees these tools."""
    spaces = {tool.namespace for tool in tools}
    return [name for name in guides() if NEEDS.get(name) in (None, *spaces)]


def guide(name: str, tools: Sequence[AnyTool]) -> str:
    """A guide; the overview ends with the caller's own guides and tools."""
    text = guides()[name]
    if name != OVERVIEW:
        return text
    others = sorted(one for one in readable(tools) if one != OVERVIEW)
    titles = "\n".join(f"- `{one}`: {guides()[one].splitlines()[0][2:]}" for one in others)
    spaces = sorted({tool.namespace for tool in tools})
    listed = "\n".join(f"- `{space}`: {_names(space, tools)}" for space in spaces)
    return f"{text}\n## Guides\n\n{titles}\n\n## Your tools\n\n{listed}\n"


def tool_page(tool: AnyTool) -> str:
    """What a tool does, takes and gives."""
    schema = orjson.dumps(tool.input_schema, option=orjson.OPT_INDENT_2).decode()
    example = orjson.dumps(dict(tool.example)).decode()
    return (
        f"# {tool.name}\n\n{tool.description}\n\nEffect: {tool.effect.value}.\n\n"
        f"## Arguments\n\n```json\n{schema}\n```\n\n## Example\n\n```json\n{example}\n```\n"
    )


def group_page(space: str, tools: Sequence[AnyTool]) -> str:
    """The tools whose names begin alike."""
    lines = (f"- `{tool.name}`: {tool.description.partition(chr(10))[0]}" for tool in tools)
    return f"# {space}\n\n" + "\n".join(lines) + "\n"


def bounded(text: str) -> str:
    """The text, cut between characters where it is too long."""
    whole = text.encode()
    if len(whole) <= MAX_BYTES:
        return text
    return whole[: MAX_BYTES - len(CUT.encode())].decode(errors="ignore") + CUT


def _names(space: str, tools: Sequence[AnyTool]) -> str:
    return ", ".join(f"`{tool.name}`" for tool in tools if tool.namespace == space)
