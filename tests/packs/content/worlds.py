"""Random worlds of content, and what to ask of them."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from hypothesis import strategies as st
from tests.packs.content.model import LISTS, Reading, Row, World, moment

from toolgate.packs.content.vocabulary import (
    CLAIM_TYPES,
    CONCEPT_KINDS,
    DIFFICULTIES,
    ENTITY_TYPES,
    RELATION_TYPES,
    STATUSES,
)

ODD = list("aAbB%_\\'\" -éÉèiIİıßẞsSſσΣςﬁﬀ😀👍🏽\u0301\U0001d400")
texts = st.text(ODD, max_size=5)
few = st.sampled_from(["a", "A", "b", "a%b", "aXb", "a_b", "ß", "SS"])
names = st.text(ODD, min_size=1, max_size=4)
maybe_texts = st.none() | texts
MOMENTS = [
    "2024-12-31T23:59:59.999Z",
    "2025-01-01T00:00:00.000Z",
    "2025-01-01T00:00:00.001Z",
    "2025-01-02T00:00:00.000Z",
]
moments = st.sampled_from(MOMENTS)
asked_moments = moments | st.sampled_from(["2025-01-01", "2025-01-02", "2024-12-31"])
elsewhere = [f"99999999-0000-4000-a000-00000000000{n}" for n in range(3)]


# What is drawn thousands of times is made once: making a strategy takes longer than drawing.
sampled = lru_cache(1024)(st.sampled_from)


@cache
def heads_of_ids(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 2**32 - 1), min_size=count, max_size=count, unique=True)


def ids(draw: Any, count: int) -> list[str]:
    """Different ids whose order is not the order in which they were made."""
    heads = draw(heads_of_ids(count))
    return [f"{head:08x}-0000-4000-a000-000000000000" for head in heads]


def unique(rows: list[Row], *key: str) -> list[Row]:
    return list({tuple(row[name] for name in key): row for row in rows}.values())


some_slugs = st.lists(names, min_size=2, max_size=3, unique=True)


@st.composite
def worlds(draw: Any) -> World:
    def rows(most: int, make: Callable[[str, Row], Row]) -> list[Row]:
        made = ids(draw, draw(st.integers(0, most)))
        return [make(id, draw(st.sampled_from(projects))) for id in made]

    def one_of(*values: Any) -> Any:
        return draw(sampled(values))

    slugs = draw(some_slugs)
    projects = [
        {
            "id": id,
            "slug": slug,
            "name": draw(texts),
            "description": draw(maybe_texts),
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
            "summary": draw(maybe_texts),
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
            "notes": draw(maybe_texts),
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
            "source_citation": draw(maybe_texts),
            "verified_until": one_of(None, *MOMENTS),
            "topic_tag": draw(maybe_texts),
            "created_at": draw(moments),
            "updated_at": draw(moments),
        }

    blocks = rows(8, block) if all(inside(project) for project in projects) else []
    return World(projects, entities, relations, performance, blocks)


places = st.fixed_dictionaries(
    {}, optional={"page": st.integers(1, 4), "limit": st.integers(1, 5) | st.just(100)}
)
types = st.lists(st.sampled_from(RELATION_TYPES[:4]), max_size=3).map(",".join)
depths = st.fixed_dictionaries(
    {}, optional={"depth": st.integers(1, 2), "relationshipTypes": types}
)


@st.composite
def asked(draw: Any, world: World) -> list[Reading]:
    """Some reads of every tool."""
    project = sampled((*(row["id"] for row in world.projects), elsewhere[2]))
    entity = sampled((*(row["id"] for row in world.entities), elsewhere[2]))

    def some(**filters: Any) -> Row:
        return draw(st.fixed_dictionaries({}, optional=filters))

    def place() -> Row:
        return draw(places)

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
        entityType=sampled(ENTITY_TYPES),
        status=sampled(STATUSES),
        search=words(*(row[name] for row in world.entities for name in ("title", "slug"))),
    )
    if kind.get("entityType", "concept") == "concept":
        kind |= some(conceptKind=sampled(CONCEPT_KINDS))
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
        claimType=sampled(CLAIM_TYPES),
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
            entity_of_project() | draw(depths),
        ),
        ("list_search_performance", {"projectId": draw(project)} | period | place()),
        ("list_search_performance", {"projectId": draw(project)} | place()),
        ("list_quotable_blocks", {"projectId": draw(project)} | claims | place()),
        ("list_quotable_blocks", {"projectId": draw(project)} | place()),
        *((tool, late()) for tool in LISTS),
    ]


cases = worlds().flatmap(lambda world: st.tuples(st.just(world), asked(world)))
