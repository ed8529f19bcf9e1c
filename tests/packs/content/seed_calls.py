"""Calls of the pack's tools, and what its demo data answers."""

import json
from typing import Any

from toolgate.gate.outcomes import Outcome
from toolgate.packs.content.demo import PSYMETRIC, RAG
from toolgate.testing import Kit

NOBODY = "00000000-0000-4000-a000-0000000000ff"
IN_PROJECT = {"projectId": PSYMETRIC}
MINIMAL: dict[str, dict[str, Any]] = {
    "list_projects": {},
    "search_entities": IN_PROJECT,
    "get_entity": {**IN_PROJECT, "entityId": RAG},
    "get_entity_graph": {**IN_PROJECT, "entityId": RAG},
    "list_search_performance": IN_PROJECT,
    "list_quotable_blocks": IN_PROJECT,
}
LISTS = ["list_projects", "search_entities", "list_search_performance", "list_quotable_blocks"]
SCOPED = [name for name in MINIMAL if name != "list_projects"]
SCOPED_LISTS = [name for name in LISTS if name in SCOPED]
UUIDS = [
    *((name, "projectId") for name in SCOPED),
    ("get_entity", "entityId"),
    ("get_entity_graph", "entityId"),
    ("list_search_performance", "entityId"),
    ("list_quotable_blocks", "entityId"),
]
DATES = [
    ("list_search_performance", "dateStart"),
    ("list_search_performance", "dateEnd"),
    ("list_quotable_blocks", "verifiedUntilBefore"),
    ("list_quotable_blocks", "verifiedUntilAfter"),
]
ENUMS = [
    ("search_entities", "entityType", ["guide", "concept", "project", "news"]),
    ("search_entities", "status", ["draft", "publish_requested", "published", "archived"]),
    ("search_entities", "conceptKind", ["standard", "model", "comparison"]),
    (
        "list_quotable_blocks",
        "claimType",
        ["statistic", "comparison", "definition", "howto_step"],
    ),
]
PROJECT = ["id", "slug", "name", "description", "createdAt", "updatedAt"]
ENTITY = [
    "id", "projectId", "entityType", "title", "slug", "summary", "difficulty", "conceptKind",
    "repoUrl", "status", "canonicalUrl", "lastVerifiedAt", "createdAt", "updatedAt",
]  # fmt: skip
RECORD = [
    "id", "projectId", "entityId", "pageUrl", "query", "impressions", "clicks", "ctr",
    "avgPosition", "dateStart", "dateEnd", "capturedAt",
]  # fmt: skip
BLOCK = [
    "id", "projectId", "entityId", "text", "claimType", "sourceCitation", "verifiedUntil",
    "topicTag", "createdAt", "updatedAt",
]  # fmt: skip
EDGE = [
    "id", "relationType", "fromEntityId", "toEntityId", "notes", "createdAt", "relatedEntity",
]  # fmt: skip


async def ask(kit: Kit, tool: str, **more: Any) -> Outcome:
    """The tool with what it needs at least, and more."""
    return await kit.send(tool, MINIMAL[tool] | more)


async def good(kit: Kit, tool: str, **more: Any) -> Any:
    outcome = await ask(kit, tool, **more)
    assert outcome.error is None, outcome.text
    return outcome.body


async def refused(kit: Kit, tool: str, **more: Any) -> str:
    """The message of a BAD_REQUEST."""
    outcome = await ask(kit, tool, **more)
    assert outcome.status == 400, outcome.text
    assert list(outcome.body) == ["error"]
    assert list(outcome.body["error"]) == ["code", "message"]
    assert outcome.body["error"]["code"] == "BAD_REQUEST"
    return outcome.body["error"]["message"]


def assert_missing(outcome: Outcome, what: str) -> None:
    assert outcome.status == 404
    told = {"error": {"code": "NOT_FOUND", "message": f"{what} not found"}}
    assert outcome.raw == json.dumps(told, separators=(",", ":")).encode()


def ids(body: Any) -> list[str]:
    return [row["id"] for row in body["data"]]
