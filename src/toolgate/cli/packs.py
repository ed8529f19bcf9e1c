"""`toolgate packs`: which packs there are, from where, and what they cost a model to read."""

import json
from typing import TYPE_CHECKING, Any

import typer

from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_settings
from toolgate.cli.output import say, say_json, table

if TYPE_CHECKING:
    from toolgate.gate.offer import AnyOffer

BYTES_A_TOKEN = 4
"""What tokenizers of language models make of JSON, roughly."""


def packs(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the packs of tools: where each comes from, how many tools and tokens it has."""
    from toolgate import packs

    settings = command_settings(ctx, config, data)
    enabled = {offer.pack.name: offer for offer in packs.offers(settings.packs.enabled)}
    known = {offer.pack.name: offer for offer in packs.offers(packs.SHIPPED)} | enabled
    rows = [
        {**_describe(name, source, known.get(name)), "enabled": name in enabled}
        for name, source in packs.sources()
    ]
    if as_json:
        return say_json({"packs": rows})
    columns = ("name", "from", "enabled", "tools", "tokens", "summary")
    table(columns, ([_cell(row[column]) for column in columns] for row in rows))
    if len(enabled) < len(rows):
        names = json.dumps([*enabled, *(row["name"] for row in rows if not row["enabled"])])
        say(f"\nThe setting packs.enabled names those that are enabled; all are {names}.")


def _describe(name: str, source: str, offer: "AnyOffer | None") -> dict[str, Any]:
    """One pack; of others' packs that are not enabled only the name is known: no import."""
    return {
        "name": name,
        "from": source,
        "tools": len(offer.tools) if offer else None,
        "tokens": _tokens(offer) if offer else None,
        "summary": offer.pack.summary if offer else None,
    }


def _tokens(offer: "AnyOffer") -> int:
    """About how many tokens a model reads when a client lists these tools over MCP."""
    import orjson

    from toolgate.transports.mcp.listing import listed_tool

    entries = (orjson.dumps(listed_tool(tool, underscores=False)) for tool in offer.tools)
    return sum(map(len, entries)) // BYTES_A_TOKEN


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else value
