"""A naive reading of plain lists, and the comparison with the tools.

Each database has a test file of its own, so that they can run side by side.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.from_thread
import orjson
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, delete

from toolgate.gate.outcomes import Outcome
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import store
from toolgate.testing import Kit, opened_kit

LISTS = ("search_entities", "list_search_performance", "list_quotable_blocks")

Row = dict[str, Any]
Reading = tuple[str, Row]

# The model


@dataclass(frozen=True)
class World:
    """All rows of all projects."""

    projects: list[Row] = field(default_factory=list[Row])
    entities: list[Row] = field(default_factory=list[Row])
    relations: list[Row] = field(default_factory=list[Row])
    performance: list[Row] = field(default_factory=list[Row])
    blocks: list[Row] = field(default_factory=list[Row])

    def loaded(self) -> list[tuple[Any, list[Row]]]:
        return [
            (tables.projects, self.projects),
            (tables.entities, self.entities),
            (tables.relations, self.relations),
            (tables.performance, self.performance),
            (tables.blocks, self.blocks),
        ]


PROJECT = ["id", "slug", "name", "description", "created_at", "updated_at"]
ENTITY = [
    "id", "project_id", "entity_type", "title", "slug", "summary", "difficulty",
    "concept_kind", "repo_url", "status", "canonical_url", "last_verified_at",
    "created_at", "updated_at",
]  # fmt: skip
RECORD = [
    "id", "project_id", "entity_id", "page_url", "query", "impressions", "clicks", "ctr",
    "avg_position", "date_start", "date_end", "captured_at",
]  # fmt: skip
BLOCK = [
    "id", "project_id", "entity_id", "text", "claim_type", "source_citation",
    "verified_until", "topic_tag", "created_at", "updated_at",
]  # fmt: skip
EDGE = ["id", "relation_type", "from_id", "to_id", "notes", "created_at"]
SHORT = ["id", "entity_type", "title", "slug", "status"]
NO_PROJECT = {"error": {"code": "NOT_FOUND", "message": "Project not found"}}
NO_ENTITY = {"error": {"code": "NOT_FOUND", "message": "Entity not found"}}


def camel(name: str) -> str:
    if name in ("from_id", "to_id"):
        return name.replace("_id", "EntityId")
    first, *more = name.split("_")
    return first + "".join(one.title() for one in more)


def shown(row: Row, names: list[str]) -> Row:
    return {camel(name): row.get(name) for name in names}


def newest_first(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["created_at"], row["id"]), reverse=True)


def paged(rows: list[Row], names: list[str], asked: Row) -> Row:
    page, limit = asked.get("page", 1), asked.get("limit", 20)
    part = rows[(page - 1) * limit :][:limit]
    place = {"page": page, "limit": limit, "total": len(rows), "hasMore": page * limit < len(rows)}
    return {"data": [shown(row, names) for row in part], "pagination": place}


def has(text: str | None, wanted: str | None) -> bool:
    if not wanted:
        return True
    return text is not None and wanted.casefold() in text.casefold()


def same(value: str | None, wanted: str | None) -> bool:
    return not wanted or value == wanted


def moment(text: str) -> str:
    return text if text.endswith("Z") else f"{text}T00:00:00.000Z"


def from_(value: str | None, start: str | None) -> bool:
    return not start or (value is not None and value >= moment(start))


def until(value: str | None, end: str | None) -> bool:
    return not end or (value is not None and value <= moment(end))


def list_projects(world: World, asked: Row) -> Row:
    ordered = sorted(world.projects, key=lambda row: (row["slug"], row["id"]))
    return paged(ordered, PROJECT, asked)


def mine(rows: list[Row], asked: Row) -> list[Row]:
    return [row for row in rows if row["project_id"] == asked["projectId"]]


def search_entities(world: World, asked: Row) -> Row:
    found = [
        row
        for row in mine(world.entities, asked)
        if same(row["entity_type"], asked.get("entityType"))
        and same(row["status"], asked.get("status"))
        and same(row["concept_kind"], asked.get("conceptKind"))
        and (has(row["title"], asked.get("search")) or has(row["slug"], asked.get("search")))
    ]
    return paged(newest_first(found), ENTITY, asked)


def get_entity(world: World, asked: Row) -> Row:
    for row in mine(world.entities, asked):
        if row["id"] == asked["entityId"]:
            return {"data": shown(row, ENTITY)}
    return NO_ENTITY


def get_entity_graph(world: World, asked: Row) -> Row:
    here = {row["id"]: row for row in mine(world.entities, asked)}
    root = asked["entityId"]
    if root not in here:
        return NO_ENTITY
    types = asked.get("relationshipTypes", "").split(",") if asked.get("relationshipTypes") else ()
    every = newest_first(
        [row for row in mine(world.relations, asked) if not types or row["relation_type"] in types]
    )
    near = [row for row in every if root in (row["from_id"], row["to_id"])]
    steps: dict[str, float] = {end: 1 for row in near for end in (row["from_id"], row["to_id"])}
    steps = {id: 1 for id in steps if id in here} | {root: 0}
    neighbours = {id for id, far in steps.items() if far == 1}
    edges = near
    if asked.get("depth", 1) == 2:
        beyond = [row for row in every if {row["from_id"], row["to_id"]} & neighbours]
        edges = near + [row for row in beyond if row not in near]
    relationships: list[Row] = []
    for row in edges:
        begins, ends = row["from_id"], row["to_id"]
        farther = begins if steps.get(begins, math.inf) > steps.get(ends, math.inf) else ends
        related = here.get(farther) if begins != ends else None
        short = shown(related, SHORT) if related else None
        relationships.append(shown(row, EDGE) | {"relatedEntity": short})
    body = {
        "rootEntity": shown(here[root], ENTITY),
        "relationships": relationships,
        "depth": asked.get("depth", 1),
    }
    return {"data": body}


def list_search_performance(world: World, asked: Row) -> Row:
    found = [
        row
        for row in mine(world.performance, asked)
        if has(row["query"], asked.get("query"))
        and has(row["page_url"], asked.get("pageUrl"))
        and same(row["entity_id"], asked.get("entityId"))
        and from_(row["date_start"], asked.get("dateStart"))
        and until(row["date_end"], asked.get("dateEnd"))
    ]
    # Sorting is stable: the last key first.
    found.sort(key=lambda row: row["id"], reverse=True)
    found.sort(key=lambda row: (row["query"], row["page_url"]))
    found.sort(key=lambda row: (row["date_start"], row["date_end"]), reverse=True)
    return paged(found, RECORD, asked)


def list_quotable_blocks(world: World, asked: Row) -> Row:
    found = [
        row
        for row in mine(world.blocks, asked)
        if same(row["entity_id"], asked.get("entityId"))
        and same(row["claim_type"], asked.get("claimType"))
        and has(row["topic_tag"], asked.get("topicTag"))
        and until(row["verified_until"], asked.get("verifiedUntilBefore"))
        and from_(row["verified_until"], asked.get("verifiedUntilAfter"))
    ]
    return paged(newest_first(found), BLOCK, asked)


MODEL: dict[str, Callable[[World, Row], Row]] = {
    "list_projects": list_projects,
    "search_entities": search_entities,
    "get_entity": get_entity,
    "get_entity_graph": get_entity_graph,
    "list_search_performance": list_search_performance,
    "list_quotable_blocks": list_quotable_blocks,
}


def expected(world: World, tool: str, asked: Row) -> Row:
    if tool in LISTS and asked["projectId"] not in {row["id"] for row in world.projects}:
        return NO_PROJECT
    return MODEL[tool](world, asked)


# The tools


@contextmanager
def opened_gate(database_url: str, folder: Path) -> Iterator[tuple[Kit, Any]]:
    """A gate on a database, on an event loop in a thread of its own."""
    with anyio.from_thread.start_blocking_portal() as portal:
        opened = opened_kit(folder, database__url=database_url)
        with portal.wrap_async_context_manager(opened) as kit:
            yield kit, portal


async def answered(kit: Kit, world: World, readings: list[Reading]) -> list[list[Outcome]]:
    """What the tools say of this world, each asked twice."""

    def replace_all(connection: Connection) -> None:
        for table, _ in reversed(world.loaded()):
            connection.execute(delete(table))
        for table, rows in world.loaded():
            if rows:
                store(connection, table, rows)

    await kit.app.gate.database.write(replace_all)
    return [[await kit.send(tool, arguments) for _ in range(2)] for tool, arguments in readings]


def worlds(number: int) -> settings:
    """So many worlds; one and its reads take about 40 ms, twice that on PostgreSQL."""
    return settings(
        max_examples=number,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )


def compare(gate: tuple[Kit, Any], case: tuple[World, list[Reading]]) -> None:
    """The tools answer what the lists say, and twice the same."""
    kit, portal = gate
    world, readings = case
    answers = portal.call(answered, kit, world, readings)
    for (tool, arguments), (outcome, again) in zip(readings, answers, strict=True):
        assert outcome.body == expected(world, tool, arguments), (tool, arguments)
        assert again.raw == outcome.raw
        assert orjson.loads(outcome.raw) == outcome.body
