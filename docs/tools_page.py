"""The page of all tools, from the catalogue."""

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from importlib import resources
from typing import Any, cast

from docs.markdown import Row, fenced, page, table
from toolgate import packs
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.schema_fields import fields_in, resolved
from toolgate.transports.http import PREFIX, route_of

GROUP = re.compile(r"\{([a-z_.]+)\.\*\}")
"""In a pack's `reference.md`: the tools of a group, such as `{db.task.*}`."""


def tools_page() -> str:
    """Every tool of the packs that ship."""
    catalogue = Catalogue(packs.offers(packs.SHIPPED))
    rows = (
        (f"[`{t.name}`](#{_anchor(t.name)})", t.title, t.pack.name, t.role, t.effect)
        for t in catalogue
    )
    parts = [
        "Each tool is called the same way over MCP, HTTP, JSON-RPC and the command line.",
        _packs_text(),
        table(("tool", "what it does", "pack", "role", "effect"), rows),
        "Callers with the role, or a higher one, may call the tool. Agents and nodes have no role: "
        "the [rules](policies.md) of a pack say which of its tools they may call.",
        *_about_packs(catalogue),
        *(part for tool in catalogue for part in _tool(tool)),
        "## Resources",
        "URIs that an MCP client can read. Each is a call to its tool, with that tool's rules.",
        table(
            ("URI", "tool", "what it is"),
            ((f"`{r.uri}`", f"`{r.tool}`", r.description) for r in catalogue.resources),
        ),
        "## Prompts",
        table(
            ("prompt", "arguments", "what it is for"),
            (
                (f"`{p.name}`", _prompt_arguments(p.arguments), p.description)
                for p in catalogue.prompts.values()
            ),
        ),
    ]
    return page("Tools", *parts)


def _anchor(heading: str) -> str:
    """Where a heading is linked to, as GitHub makes it."""
    return heading.replace(".", "")


def _packs_text() -> str:
    enabled = ", ".join(f"`{name}`" for name in packs.DEFAULT)
    others = ", ".join(f"`{name}`" for name in packs.SHIPPED if name not in packs.DEFAULT)
    named = f" Enabled by name only: {others} (`packs.enabled = {json.dumps(packs.SHIPPED)}`)."
    return f"Enabled unless the settings name others: {enabled}.{named if others else ''}"


def _about_packs(catalogue: Catalogue) -> Iterator[str]:
    """What packs say of their tools as a whole."""
    for name in packs.SHIPPED:
        text = resources.files(packs) / name / "reference.md"
        if text.is_file():
            links = partial(_links, catalogue)
            yield GROUP.sub(links, text.read_text(encoding="utf-8")).strip()


def _links(catalogue: Catalogue, group: re.Match[str]) -> str:
    """The tools of a group."""
    names = [tool.name for tool in catalogue if tool.name.rpartition(".")[0] == group[1]]
    return ", ".join(f"[`{name}`](#{_anchor(name)})" for name in names)


def _prompt_arguments(arguments: Iterable[Any]) -> str:
    told = (f"`{one.name}`{'' if one.required else ' (optional)'}" for one in arguments)
    return ", ".join(told) or "none"


def _tool(tool: AnyTool) -> Iterator[str]:
    yield f"## {tool.name}"
    yield tool.description
    yield (
        f"Pack `{tool.pack.name}`, family `{tool.family}`, role `{tool.role}`, "
        f"effect `{tool.effect}`, {_routes(tool)}."
    )
    yield _fields("Arguments", tool.input_schema)
    yield _fields("Result", tool.output_schema)
    yield "Example:"
    yield fenced(json.dumps(tool.example, indent=2, ensure_ascii=False), "json")


def _routes(tool: AnyTool) -> str:
    every_tool = f"`POST {PREFIX}/{tool.name}`"
    return f"routes {every_tool} and `{route_of(tool)}`" if tool.route else f"route {every_tool}"


def _fields(heading: str, schema: dict[str, Any]) -> str:
    rows = list(_rows(schema))
    if not rows:
        return f"{heading}: none."
    told = table(("name", "type", "required", "default", "meaning"), rows)
    rest = schema.get("additionalProperties") is True
    return f"{heading}:\n\n{told}" + ("\n\nAlso the document's own fields." if rest else "")


def _rows(schema: dict[str, Any]) -> Iterator[Row]:
    for path, one, required in fields_in(schema):
        default = f"`{json.dumps(one['default'])}`" if one.get("default") is not None else ""
        needed = "yes" if required else "no"
        yield f"`{path}`", _type(one, schema), needed, default, one.get("description", "")


def _type(schema: dict[str, Any], root: dict[str, Any]) -> str:
    schema = resolved(schema, root)
    if "anyOf" in schema:
        return " or ".join(_type(one, root) for one in schema["anyOf"])
    kind = schema.get("contentEncoding") or schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(cast("list[str]", kind))
    return f"list of {_type(schema.get('items', {}), root)}" if kind == "array" else kind
