"""A server with every pack that ships, and the tools that the usual server does not have."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.servers import Server, running_server

from toolgate import packs
from toolgate.gate.catalogue import AnyTool, Catalogue

EVERY_TOOL = list(Catalogue(packs.offers(packs.SHIPPED)))
CALLED_FOR_REAL = ("appdata", "content")
"""Packs whose examples can be called again and again, and are answered alike."""
FURTHER = [tool for tool in EVERY_TOOL if tool.pack.name not in CALLED_FOR_REAL]
TOLD_ANEW = {"firebase.read", "health_check", "get_payment_portal", "get_stats", "get_user"}
"""Tools that read, and tell another time or address each time."""
DRY_RUN = {"X-Dry-Run": "true"}
"""Some of them change what the examples of others need."""


@pytest.fixture(scope="module")
def full_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One with every pack that ships."""
    with running_server(tmp_path_factory, packs__enabled=[*packs.SHIPPED]) as running:
        yield running


def kinds(value: Any) -> Any:
    """A value of JSON with the kinds of its texts and numbers: ids and times are made anew."""
    match value:
        case dict():
            return {name: kinds(inner) for name, inner in value.items()}
        case list():
            return [kinds(inner) for inner in value]
        case _:
            return type(value).__name__


def check_told(tool: AnyTool, text: str, server: Server) -> None:
    """A client was told of a tool's example what plain HTTP tells of it."""
    try:
        told = json.loads(text)
    except ValueError:  # some packs word an error as a sentence
        told = {"error": text}
    with server.client(**DRY_RUN) as plain:
        expected = plain.post(f"/v1/tools/{tool.name}", json=dict(tool.example)).json()
    if tool.writes or tool.name in TOLD_ANEW:
        told, expected = kinds(told), kinds(expected)
    if tool.attachment_field:  # a link over MCP, with tests of its own
        told["result"].pop(tool.attachment_field, None)
        expected["result"].pop(tool.attachment_field)
    assert told == expected
