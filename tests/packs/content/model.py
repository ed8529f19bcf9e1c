"""A naive reading of plain lists, random worlds for it, and the comparison with the tools.

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
from hypothesis import strategies as st
from sqlalchemy import Connection, delete

from toolgate.db import content_tables as tables
from toolgate.db.content_loading import store
from toolgate.db.content_words import (
    CLAIM_TYPES,
    CONCEPT_KINDS,
    DIFFICULTIES,
    ENTITY_TYPES,
    RELATION_TYPES,
    STATUSES,
)
from toolgate.testing import Kit, opened_kit

EXAMPLES = 1000
LISTS = ("search_entities", "list_search_performance", "list_quotable_blocks")
"""Worlds for each database; one and its reads take about 100 ms."""

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
    lists = ("search_entities", "list_search_performance", "list_quotable_blocks")
    if tool in lists and asked["projectId"] not in {row["id"] for row in world.projects}:
        return NO_PROJECT
    return MODEL[tool](world, asked)


# Worlds

ODD = list("aAbB%_\\'\" -éÉèiIİıßẞsSſσΣςﬁﬀ😀👍🏽\u0301\U0001d400")
texts = st.text(ODD, max_size=5)
few = st.sampled_from(["a", "A", "b", "a%b", "aXb", "a_b", "ß", "SS"])
names = st.text(ODD, min_size=1, max_size=4)
MOMENTS = [
    "2024-12-31T23:59:59.999Z",
    "2025-01-01T00:00:00.000Z",
    "2025-01-01T00:00:00.001Z",
    "2025-01-02T00:00:00.000Z",
]
moments = st.sampled_from(MOMENTS)
asked_moments = moments | st.sampled_from(["2025-01-01", "2025-01-02", "2024-12-31"])
elsewhere = [f"99999999-0000-4000-a000-00000000000{n}" for n in range(3)]


def ids(draw: Any, count: int) -> list[str]:
    """Different ids whose order is not the order in which they were made."""
    heads = draw(st.lists(st.integers(0, 2**32 - 1), min_size=count, max_size=count, unique=True))
    return [f"{head:08x}-0000-4000-a000-000000000000" for head in heads]


def unique(rows: list[Row], *key: str) -> list[Row]:
    return list({tuple(row[name] for name in key): row for row in rows}.values())


@st.composite
def worlds(draw: Any) -> World:
    def rows(most: int, make: Callable[[str, Row], Row]) -> list[Row]:
        made = ids(draw, draw(st.integers(0, most)))
        return [make(id, draw(st.sampled_from(projects))) for id in made]

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    slugs = draw(st.lists(names, min_size=2, max_size=3, unique=True))
    projects = [
        {
            "id": id,
            "slug": slug,
            "name": draw(texts),
            "description": draw(st.none() | texts),
            "created_at": draw(moments),
            "updated_at": draw(moments),
        }
        for id, slug in zip(ids(draw, len(slugs)), slugs, strict=True)
    ]

    def entity(id: str, project: Row) -> Row:
        kind = one_of(*ENTITY_TYPES)
        return {
            "id": id,
            "project_id": project["id"],
            "entity_type": kind,
            "title": draw(texts),
            "slug": draw(names),
            "summary": draw(st.none() | texts),
            "difficulty": one_of(None, *DIFFICULTIES),
            "concept_kind": one_of(None, *CONCEPT_KINDS) if kind == "concept" else None,
            "repo_url": "https://code.example" if kind == "project" else one_of(None, ""),
            "status": one_of(*STATUSES),
            "canonical_url": one_of(None, "https://site.example"),
            "last_verified_at": one_of(None, *MOMENTS),
            "created_at": draw(moments),
            "updated_at": draw(moments),
        }

    entities = unique(rows(8, entity), "project_id", "entity_type", "slug")

    def inside(project: Row) -> list[Row]:
        return [row for row in entities if row["project_id"] == project["id"]]

    def relation(id: str, project: Row) -> Row:
        outside = [{"id": far, "entity_type": "video"} for far in elsewhere[:2]]
        ends = [draw(st.sampled_from([*inside(project) * 3, *outside])) for _ in range(2)]
        begins, ends = ends
        return {
            "id": id,
            "project_id": project["id"],
            "relation_type": one_of(*RELATION_TYPES[:4]),
            "from_type": begins["entity_type"],
            "from_id": begins["id"],
            "to_type": ends["entity_type"],
            "to_id": ends["id"],
            "notes": draw(st.none() | texts),
            "created_at": draw(moments),
        }

    edge = ("project_id", "from_type", "from_id", "to_type", "to_id", "relation_type")
    relations = unique(rows(14, relation), *edge)

    def record(id: str, project: Row) -> Row:
        impressions = draw(st.integers(0, 2**31 - 1))
        return {
            "id": id,
            "project_id": project["id"],
            "entity_id": one_of(None, *(row["id"] for row in inside(project))),
            "page_url": draw(few),
            "query": draw(few),
            "impressions": impressions,
            "clicks": draw(st.integers(0, impressions)),
            "ctr": draw(st.floats(0, 1)),
            "avg_position": draw(st.floats(0.01, 1e6)),
            "date_start": draw(moments),
            "date_end": draw(moments),
            "captured_at": draw(moments),
        }

    period = ("project_id", "query", "page_url", "date_start", "date_end")
    performance = unique(rows(8, record), *period)

    def block(id: str, project: Row) -> Row:
        return {
            "id": id,
            "project_id": project["id"],
            "entity_id": one_of(*(row["id"] for row in inside(project))),
            "text": draw(texts),
            "claim_type": one_of(*CLAIM_TYPES),
            "source_citation": draw(st.none() | texts),
            "verified_until": one_of(None, *MOMENTS),
            "topic_tag": draw(st.none() | texts),
            "created_at": draw(moments),
            "updated_at": draw(moments),
        }

    blocks = rows(8, block) if all(inside(project) for project in projects) else []
    return World(projects, entities, relations, performance, blocks)


@st.composite
def asked(draw: Any, world: World) -> list[Reading]:
    """Some reads of every tool."""
    project = st.sampled_from([*(row["id"] for row in world.projects), elsewhere[2]])
    entity = st.sampled_from([*(row["id"] for row in world.entities), elsewhere[2]])

    def some(**filters: Any) -> Row:
        return draw(st.fixed_dictionaries({}, optional=filters))

    def place() -> Row:
        return some(page=st.integers(1, 4), limit=st.integers(1, 5) | st.just(100))

    def late() -> Row:
        """A page behind the first, of lists that have few rows."""
        return {"projectId": draw(project), "page": draw(st.integers(2, 3)), "limit": 1}

    def words(*found: str | None) -> Any:
        return texts | few | st.sampled_from(["", *(one for one in found if one is not None)])

    def entity_of_project() -> Row:
        if not world.entities or not draw(st.integers(0, 4)):
            return {"projectId": draw(project), "entityId": draw(entity)}
        row = draw(st.sampled_from(world.entities))
        return {"projectId": row["project_id"], "entityId": row["id"]}

    kind = some(
        entityType=st.sampled_from(ENTITY_TYPES),
        status=st.sampled_from(STATUSES),
        search=words(*(row[name] for row in world.entities for name in ("title", "slug"))),
    )
    if kind.get("entityType", "concept") == "concept":
        kind |= some(conceptKind=st.sampled_from(CONCEPT_KINDS))
    types = st.lists(st.sampled_from(RELATION_TYPES[:4]), max_size=3).map(",".join)
    period = some(
        query=words(*(row["query"] for row in world.performance)),
        pageUrl=words(*(row["page_url"] for row in world.performance)),
        entityId=entity,
        dateStart=asked_moments,
        dateEnd=asked_moments,
    )
    if "dateStart" in period and "dateEnd" in period:
        start, end = sorted((period["dateStart"], period["dateEnd"]), key=moment)
        period |= {"dateStart": start, "dateEnd": end}
    claims = some(
        entityId=entity,
        claimType=st.sampled_from(CLAIM_TYPES),
        topicTag=words(*(row["topic_tag"] for row in world.blocks)),
        verifiedUntilBefore=asked_moments,
        verifiedUntilAfter=asked_moments,
    )
    before = {"projectId": draw(project), "verifiedUntilBefore": draw(moments)}
    after = {"projectId": draw(project), "verifiedUntilAfter": draw(moments)}
    start = {"projectId": draw(project), "dateStart": draw(moments)}
    end = {"projectId": draw(project), "dateEnd": draw(moments)}
    return [
        ("list_quotable_blocks", before),
        ("list_quotable_blocks", after),
        ("list_search_performance", start),
        ("list_search_performance", end),
        ("list_search_performance", {"projectId": draw(project), "query": draw(few)}),
        ("list_projects", place()),
        ("search_entities", {"projectId": draw(project)} | kind | place()),
        ("search_entities", {"projectId": draw(project)} | place()),
        ("get_entity", entity_of_project()),
        ("get_entity_graph", entity_of_project() | {"depth": 2}),
        (
            "get_entity_graph",
            entity_of_project() | some(depth=st.integers(1, 2), relationshipTypes=types),
        ),
        ("list_search_performance", {"projectId": draw(project)} | period | place()),
        ("list_search_performance", {"projectId": draw(project)} | place()),
        ("list_quotable_blocks", {"projectId": draw(project)} | claims | place()),
        ("list_quotable_blocks", {"projectId": draw(project)} | place()),
        *((tool, late()) for tool in LISTS),
    ]


cases = worlds().flatmap(lambda world: st.tuples(st.just(world), asked(world)))


# The tools


@contextmanager
def opened_gate(database_url: str, folder: Path) -> Iterator[tuple[Kit, Any]]:
    """A gate on a database, on an event loop in a thread of its own."""
    with anyio.from_thread.start_blocking_portal() as portal:
        opened = opened_kit(folder, database__url=database_url)
        with portal.wrap_async_context_manager(opened) as kit:
            yield kit, portal


def replace_all(kit: Kit, portal: Any, world: World) -> None:
    def work(connection: Connection) -> None:
        for table, _ in reversed(world.loaded()):
            connection.execute(delete(table))
        for table, rows in world.loaded():
            if rows:
                store(connection, table, rows)

    portal.call(kit.app.gate.database.write, work)


thousand_worlds = settings(
    max_examples=EXAMPLES,
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
    replace_all(kit, portal, world)
    for tool, arguments in readings:
        outcome = portal.call(kit.send, tool, arguments)
        assert outcome.body == expected(world, tool, arguments), (tool, arguments)
        again = portal.call(kit.send, tool, arguments)
        assert again.raw == outcome.raw
        assert orjson.loads(outcome.raw) == outcome.body
