"""What the specification of the content tools says, statement by statement."""

import json
from typing import Any

import pytest

from toolgate.gate.outcomes import Outcome
from toolgate.gate.tool import Effect
from toolgate.packs.content.demo import (
    BLOCKS,
    COMPOST,
    CONTEXT_WINDOW,
    EMBEDDINGS,
    ENTITIES,
    GARDEN,
    GUIDE,
    NEWS,
    PSYMETRIC,
    RAG,
    TOOLKIT,
    VERSUS,
    VIDEO,
)
from toolgate.packs.content.vocabulary import RELATION_TYPES
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

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


# Scope of the pack


async def test_the_pack_has_the_six_tools_and_none_of_them_writes(kit: Kit) -> None:
    tools = [tool for tool in kit.app.gate.catalogue if tool.pack.name == "content"]
    assert [tool.name for tool in tools] == list(MINIMAL)
    assert {tool.effect for tool in tools} == {Effect.READ}


async def test_the_addresses_are_those_of_the_backend(kit: Kit) -> None:
    tools = [tool for tool in kit.app.gate.catalogue if tool.pack.name == "content"]
    assert [tool.route and f"{tool.route.method} {tool.route.path}" for tool in tools] == [
        "GET /api/projects",
        "GET /api/entities",
        "GET /api/entities/{entityId}",
        "GET /api/entities/{entityId}/graph",
        "GET /api/seo/search-performance",
        "GET /api/quotable-blocks",
    ]


@pytest.mark.parametrize("tool", MINIMAL)
async def test_unknown_arguments_are_refused(kit: Kit, tool: str) -> None:
    assert "Unknown argument 'sort'" in await refused(kit, tool, sort="title")


@pytest.mark.parametrize("tool", MINIMAL)
async def test_two_reads_of_the_same_state_have_the_same_bytes(kit: Kit, tool: str) -> None:
    assert (await ask(kit, tool)).raw == (await ask(kit, tool)).raw


@pytest.mark.parametrize("tool", SCOPED)
async def test_the_project_is_required(kit: Kit, tool: str) -> None:
    given = {name: value for name, value in MINIMAL[tool].items() if name != "projectId"}
    outcome = await kit.send(tool, given)
    assert outcome.body == {"error": {"code": "BAD_REQUEST", "message": "projectId is required"}}


@pytest.mark.parametrize("tool", ["get_entity", "get_entity_graph"])
async def test_the_entity_is_required(kit: Kit, tool: str) -> None:
    outcome = await kit.send(tool, IN_PROJECT)
    assert outcome.body == {"error": {"code": "BAD_REQUEST", "message": "entityId is required"}}


# UUIDs


@pytest.mark.parametrize(("tool", "name"), UUIDS)
@pytest.mark.parametrize(
    "value",
    [
        "00000000-0000-0000-a000-000000000001",
        "00000000-0000-6000-a000-000000000001",
        "00000000-0000-7000-a000-000000000001",
        "00000000-0000-4000-7000-000000000001",
        "00000000-0000-4000-c000-000000000001",
        "00000000-0000-4000-a000-00000000000",
        "00000000-0000-4000-a000-0000000000011",
        "g0000000-0000-4000-a000-000000000001",
        "000000000000-4000-a000-000000000001",
        "{00000000-0000-4000-a000-000000000001}",
        "00000000-0000-4000-a000-000000000001\n",
        " 00000000-0000-4000-a000-000000000001",
        "٠0000000-0000-4000-a000-000000000001",
        "psymetric",
    ],
)
async def test_a_malformed_uuid_is_refused(kit: Kit, tool: str, name: str, value: str) -> None:
    assert await refused(kit, tool, **{name: value}) == f"{name} must be a valid UUID"


@pytest.mark.parametrize("value", [1, True, ["x"], {}])
@pytest.mark.parametrize(("tool", "name"), UUIDS)
async def test_a_uuid_is_a_text(kit: Kit, tool: str, name: str, value: Any) -> None:
    assert name in await refused(kit, tool, **{name: value})


@pytest.mark.parametrize("version", "12345")
@pytest.mark.parametrize("variant", "89abAB")
async def test_uuids_of_versions_one_to_five_are_well_formed(
    kit: Kit, version: str, variant: str
) -> None:
    wanted = f"00000000-0000-{version}000-{variant}000-0000000000ff"
    assert_missing(await ask(kit, "get_entity", entityId=wanted), "Entity")
    assert_missing(await ask(kit, "search_entities", projectId=wanted), "Project")


async def test_uuids_in_upper_case_mean_the_same(kit: Kit) -> None:
    for tool in SCOPED:
        loud = {name: value.upper() for name, value in MINIMAL[tool].items()}
        assert loud != MINIMAL[tool]
        assert (await kit.send(tool, loud)).raw == (await ask(kit, tool)).raw
    for tool in ("list_search_performance", "list_quotable_blocks"):
        assert len((await good(kit, tool, entityId=RAG.upper()))["data"]) == 1


# Dates


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize(
    "value",
    [
        "2025-02-30",
        "2025-13-01",
        "2025-00-10",
        "2025-01-00",
        "2023-02-29",
        "0000-01-01",
        "02/20/2025",
        "20.02.2025",
        "2025/02/20",
        "20250220",
        "2025-2-20",
        "2025-W08-4",
        "2025-02",
        "2025-02-20T14:30:00.000+00:00",
        "2025-02-20T14:30:00+00:00",
        "2025-02-20T14:30:00-05:00",
        "2025-02-20T14:30:00.000",
        "2025-02-20T14:30:00",
        "2025-02-20 14:30:00Z",
        "2025-02-20T25:00:00Z",
        "2025-02-20T24:00:00Z",
        "2025-02-20T14:60:00Z",
        "2025-02-20T14:30:60Z",
        "2025-02-30T14:30:00Z",
        "2025-02-20T14:30Z",
        "2025-02-20T14:30:00.Z",
        "2025-02-20T14:30:00.0000Z",
        "2025-02-20T14:30:00.1Z",
        "2025-02-20T14:30:00.12Z",
        "2025-02-20T24:00:00.000Z",
        "2025-02-20T14:60:00.000Z",
        "2025-02-20T14:30:60.000Z",
        "2025-02-30T14:30:00.000Z",
        "",
        "2025-02-20T14:30:00,000Z",
        "2025-02-20t14:30:00z",
        "2025-02-20\n",
        " 2025-02-20",
        "٢٠٢٥-02-20",
        "today",
    ],
)
async def test_other_dates_are_refused(kit: Kit, tool: str, name: str, value: str) -> None:
    assert (await refused(kit, tool, **{name: value})).startswith(f"{name} must be a real date")


@pytest.mark.parametrize(
    "value", ["2025-02-20", "2025-02-20T14:30:00Z", "2025-02-20T14:30:00.000Z"]
)
@pytest.mark.parametrize("name", ["dateStart", "dateEnd"])
async def test_dates_are_read_as_the_specification_prints_them(
    kit: Kit, name: str, value: str
) -> None:
    await good(kit, "list_search_performance", **{name: value})


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize("value", [20250220, 1.5, True, ["2025-02-20"]])
async def test_a_date_is_a_text(kit: Kit, tool: str, name: str, value: Any) -> None:
    assert name in await refused(kit, tool, **{name: value})


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize(
    "value",
    ["2025-02-20", "2024-02-29", "2025-02-20T14:30:00.000Z", "2025-02-20T14:30:00.123Z"],
)
async def test_both_forms_of_a_date_are_taken(kit: Kit, tool: str, name: str, value: str) -> None:
    await good(kit, tool, **{name: value})


async def test_a_timestamp_counts_to_the_millisecond(kit: Kit) -> None:
    for fraction, found in [("000", 1), ("001", 0), ("010", 0), ("100", 0)]:
        body = await good(
            kit,
            "list_quotable_blocks",
            verifiedUntilAfter=f"2025-12-31T00:00:00.{fraction}Z",
            verifiedUntilBefore="2026-01-01",
        )
        assert body["pagination"]["total"] == found


# Enums


@pytest.mark.parametrize(("tool", "name", "options"), ENUMS)
@pytest.mark.parametrize("value", ["nonsense", "GUIDE", "Draft", " standard", "statistic ", "", 1])
async def test_an_unknown_enum_value_is_answered_with_the_valid_ones(
    kit: Kit, tool: str, name: str, options: list[str], value: Any
) -> None:
    told = await refused(kit, tool, **{name: value})
    listed = ", ".join(f"'{one}'" for one in options[:-1]) + f" or '{options[-1]}'"
    assert told == f"{name} must be one of: {listed}"


@pytest.mark.parametrize(("tool", "name", "options"), ENUMS)
async def test_every_listed_enum_value_filters(
    kit: Kit, tool: str, name: str, options: list[str]
) -> None:
    every = (await good(kit, tool))["data"]
    for option in options:
        body = await good(kit, tool, **{name: option})
        assert body["data"] == [row for row in every if row[name] == option]


# Pages


@pytest.mark.parametrize("tool", LISTS)
@pytest.mark.parametrize("name", ["page", "limit"])
@pytest.mark.parametrize("value", [0, -1, "1", 1.5, True, [1], 10**30, float("inf")])
async def test_other_pages_and_limits_are_refused(
    kit: Kit, tool: str, name: str, value: Any
) -> None:
    assert (await refused(kit, tool, **{name: value})).startswith(f"{name} must be ")


@pytest.mark.parametrize("tool", LISTS)
async def test_a_limit_over_one_hundred_is_refused(kit: Kit, tool: str) -> None:
    assert await refused(kit, tool, limit=101) == "limit must be at most 100"
    assert (await good(kit, tool, limit=100))["pagination"]["limit"] == 100


@pytest.mark.parametrize("tool", LISTS)
async def test_a_whole_number_may_have_a_point(kit: Kit, tool: str) -> None:
    outcome = await ask(kit, tool, limit=20.0, page=1.0)
    assert outcome.raw == (await ask(kit, tool)).raw
    assert b'"page":1,"limit":20,' in outcome.raw


@pytest.mark.parametrize("tool", LISTS)
async def test_the_default_is_the_first_page_of_twenty(kit: Kit, tool: str) -> None:
    body = await good(kit, tool)
    assert list(body) == ["data", "pagination"]
    many = len(body["data"])
    assert list(body["pagination"].items()) == [
        ("page", 1), ("limit", 20), ("total", many), ("hasMore", False),
    ]  # fmt: skip


@pytest.mark.parametrize("tool", LISTS)
async def test_pages_of_one_make_up_the_list(kit: Kit, tool: str) -> None:
    every = (await good(kit, tool))["data"]
    assert len(every) > 1
    for page, row in enumerate(every, 1):
        body = await good(kit, tool, page=page, limit=1)
        assert body["data"] == [row]
        more = page < len(every)
        assert body["pagination"] == {
            "page": page, "limit": 1, "total": len(every), "hasMore": more,
        }  # fmt: skip


@pytest.mark.parametrize("tool", LISTS)
async def test_there_is_more_only_before_the_end(kit: Kit, tool: str) -> None:
    total = (await good(kit, tool))["pagination"]["total"]
    for limit, more in [(total - 1, True), (total, False), (total + 1, False)]:
        assert (await good(kit, tool, limit=limit))["pagination"]["hasMore"] is more


@pytest.mark.parametrize("tool", LISTS)
@pytest.mark.parametrize("page", [2, 1_000_000_000])
async def test_a_page_past_the_end_is_empty(kit: Kit, tool: str, page: int) -> None:
    body = await good(kit, tool, page=page, limit=100)
    total = (await good(kit, tool))["pagination"]["total"]
    assert body == {
        "data": [],
        "pagination": {"page": page, "limit": 100, "total": total, "hasMore": False},
    }


# Projects and their borders


@pytest.mark.parametrize("tool", SCOPED_LISTS)
async def test_an_unknown_project_is_not_found(kit: Kit, tool: str) -> None:
    assert_missing(await ask(kit, tool, projectId=NOBODY), "Project")


@pytest.mark.parametrize("tool", ["get_entity", "get_entity_graph"])
async def test_an_entity_of_another_project_is_as_missing_as_any(kit: Kit, tool: str) -> None:
    foreign = await ask(kit, tool, entityId=COMPOST)
    assert_missing(foreign, "Entity")
    assert foreign.raw == (await ask(kit, tool, entityId=NOBODY)).raw
    assert foreign.raw == (await ask(kit, tool, projectId=GARDEN)).raw
    assert foreign.raw == (await ask(kit, tool, projectId=NOBODY)).raw


@pytest.mark.parametrize("tool", ["list_search_performance", "list_quotable_blocks"])
async def test_filtering_by_an_entity_elsewhere_finds_nothing(kit: Kit, tool: str) -> None:
    foreign = await ask(kit, tool, entityId=COMPOST)
    assert foreign.body["data"] == []
    assert foreign.raw == (await ask(kit, tool, entityId=NOBODY)).raw


async def test_a_list_holds_only_what_is_in_the_project(kit: Kit) -> None:
    assert ids(await good(kit, "search_entities", projectId=GARDEN)) == [COMPOST]
    for tool in ("list_search_performance", "list_quotable_blocks"):
        assert ids(await good(kit, tool, projectId=GARDEN)) == []
    for tool in SCOPED_LISTS:
        rows = (await good(kit, tool))["data"]
        assert {row["projectId"] for row in rows} == {PSYMETRIC}


# list_projects


async def test_projects_have_their_six_fields(kit: Kit) -> None:
    for row in (await good(kit, "list_projects"))["data"]:
        assert list(row) == PROJECT


async def test_projects_are_ordered_by_slug(kit: Kit) -> None:
    rows = (await good(kit, "list_projects"))["data"]
    assert [row["slug"] for row in rows] == ["garden-notes", "psymetric"]


# search_entities, get_entity


async def test_entities_have_their_fourteen_fields(kit: Kit) -> None:
    assert len(ENTITY) == 14
    for row in (await good(kit, "search_entities"))["data"]:
        assert list(row) == ENTITY
        assert list((await good(kit, "get_entity", entityId=row["id"])).items()) == [("data", row)]


async def test_entities_come_newest_first(kit: Kit) -> None:
    newest = [TOOLKIT, NEWS, GUIDE, VERSUS, CONTEXT_WINDOW, EMBEDDINGS, RAG]
    assert ids(await good(kit, "search_entities")) == newest


async def test_what_is_not_known_of_an_entity_is_null(kit: Kit) -> None:
    entity = (await good(kit, "get_entity", entityId=NEWS))["data"]
    empty = [name for name, value in entity.items() if value is None]
    assert empty == [
        "summary", "difficulty", "conceptKind", "repoUrl", "canonicalUrl", "lastVerifiedAt",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["guide", "project", "news"])
async def test_a_concept_kind_with_another_type_is_refused(kit: Kit, kind: str) -> None:
    told = await refused(kit, "search_entities", entityType=kind, conceptKind="model")
    assert told == "conceptKind is only valid with entityType concept"


async def test_a_concept_kind_means_concepts(kit: Kit) -> None:
    alone = await ask(kit, "search_entities", conceptKind="model")
    assert ids(alone.body) == [CONTEXT_WINDOW]
    both = await ask(kit, "search_entities", conceptKind="model", entityType="concept")
    assert both.raw == alone.raw


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rag", [TOOLKIT, GUIDE, VERSUS, RAG]),
        ("RAG", [TOOLKIT, GUIDE, VERSUS, RAG]),
        ("RaG-", [TOOLKIT, GUIDE, VERSUS]),
        ("rag or", [VERSUS]),
        ("Retrieval-augmented", [RAG]),
        ("windows-grow", [NEWS]),
        ("%", []),
        ("_", []),
        ("r%g", []),
        (" ", [TOOLKIT, NEWS, GUIDE, VERSUS, CONTEXT_WINDOW, RAG]),
        ("a\0b", []),
        ("'; --", []),
    ],
)
async def test_a_search_looks_into_title_and_slug(kit: Kit, text: str, found: list[str]) -> None:
    assert ids(await good(kit, "search_entities", search=text)) == found


async def test_filters_are_combined(kit: Kit) -> None:
    body = await good(
        kit, "search_entities", search="rag", entityType="concept", status="published"
    )
    assert ids(body) == [VERSUS, RAG]
    assert body["pagination"]["total"] == 2


FILTERS = {
    "search_entities": ["entityType", "status", "conceptKind", "search"],
    "list_search_performance": ["query", "pageUrl", "entityId", "dateStart", "dateEnd"],
    "list_quotable_blocks": [
        "entityId", "claimType", "topicTag", "verifiedUntilBefore", "verifiedUntilAfter",
    ],
}  # fmt: skip
SUBSTRINGS = {"search", "query", "pageUrl", "topicTag"}


@pytest.mark.parametrize("tool", FILTERS)
async def test_a_filter_that_is_null_filters_nothing(kit: Kit, tool: str) -> None:
    every = (await ask(kit, tool)).raw
    assert (await ask(kit, tool, **dict.fromkeys(FILTERS[tool]))).raw == every
    for name in FILTERS[tool]:
        assert (await ask(kit, tool, **{name: None})).raw == every


@pytest.mark.parametrize("tool", FILTERS)
async def test_an_empty_substring_filters_nothing(kit: Kit, tool: str) -> None:
    every = (await ask(kit, tool)).raw
    for name in SUBSTRINGS.intersection(FILTERS[tool]):
        assert (await ask(kit, tool, **{name: ""})).raw == every


@pytest.mark.parametrize("tool", FILTERS)
async def test_an_empty_enum_id_or_date_is_refused_by_its_name(kit: Kit, tool: str) -> None:
    for name in set(FILTERS[tool]) - SUBSTRINGS:
        assert (await refused(kit, tool, **{name: ""})).startswith(name)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("search_entities", "search"),
        ("list_search_performance", "query"),
        ("list_search_performance", "pageUrl"),
        ("list_quotable_blocks", "topicTag"),
    ],
)
async def test_a_text_to_look_for_is_a_text_of_bounded_length(
    kit: Kit, tool: str, name: str
) -> None:
    assert (await good(kit, tool, **{name: "x" * 1000}))["data"] == []
    assert (await good(kit, tool, **{name: "\0"}))["data"] == []
    for value in ("x" * 1001, 1, ["rag"], True, "\ud800"):
        assert name in await refused(kit, tool, **{name: value})


# get_entity_graph


async def graph(kit: Kit, **more: Any) -> Any:
    return (await good(kit, "get_entity_graph", **more))["data"]


def related(found: Any) -> list[tuple[str, str | None]]:
    """Each relation's number, and the entity it leads to."""
    return [
        (row["id"][-2:], row["relatedEntity"] and row["relatedEntity"]["id"])
        for row in found["relationships"]
    ]


DIRECT = [("06", None), ("04", TOOLKIT), ("02", EMBEDDINGS), ("01", GUIDE)]


async def test_a_graph_has_root_relationships_and_depth(kit: Kit) -> None:
    found = await graph(kit)
    assert list(found) == ["rootEntity", "relationships", "depth"]
    root = (await good(kit, "get_entity"))["data"]
    assert list(found["rootEntity"].items()) == list(root.items())
    for row in found["relationships"]:
        assert list(row) == EDGE
        if row["relatedEntity"]:
            assert list(row["relatedEntity"]) == ["id", "entityType", "title", "slug", "status"]


async def test_depth_one_is_what_touches_the_root_newest_first(kit: Kit) -> None:
    found = await graph(kit, depth=1)
    assert found["depth"] == 1
    assert related(found) == DIRECT
    assert found == await graph(kit)


async def test_depth_two_adds_what_touches_the_neighbours(kit: Kit) -> None:
    found = await graph(kit, depth=2)
    assert found["depth"] == 2
    assert related(found) == [*DIRECT, ("05", CONTEXT_WINDOW)]


async def test_depth_two_from_the_rim_shows_the_farther_end(kit: Kit) -> None:
    found = await graph(kit, entityId=GUIDE, depth=2)
    assert related(found) == [("01", RAG), ("06", None), ("04", TOOLKIT), ("02", EMBEDDINGS)]


async def test_a_video_is_no_related_entity(kit: Kit) -> None:
    video = (await graph(kit))["relationships"][0]
    assert (video["fromEntityId"], video["toEntityId"]) == (VIDEO, RAG)
    assert video["relatedEntity"] is None


async def test_an_entity_without_relations_has_an_empty_graph(kit: Kit) -> None:
    for depth in (1, 2):
        assert (await graph(kit, entityId=VERSUS, depth=depth))["relationships"] == []


@pytest.mark.parametrize("depth", [0, 3, -1, "1", "2", True, 1.5, [1], {}, ""])
async def test_another_depth_is_refused(kit: Kit, depth: Any) -> None:
    assert await refused(kit, "get_entity_graph", depth=depth) == "depth must be 1 or 2"


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ("", DIRECT),
        ("GUIDE_USES_CONCEPT", [("01", GUIDE)]),
        ("GUIDE_USES_CONCEPT,PROJECT_IMPLEMENTS_CONCEPT", [("04", TOOLKIT), ("01", GUIDE)]),
        ("PROJECT_IMPLEMENTS_CONCEPT,GUIDE_USES_CONCEPT", [("04", TOOLKIT), ("01", GUIDE)]),
        ("PROJECT_IMPLEMENTS_CONCEPT, GUIDE_USES_CONCEPT", [("04", TOOLKIT), ("01", GUIDE)]),
        (" GUIDE_USES_CONCEPT ,  PROJECT_IMPLEMENTS_CONCEPT ", [("04", TOOLKIT), ("01", GUIDE)]),
        ("VIDEO_EXPLAINS_NEWS", []),
        (",".join(RELATION_TYPES), DIRECT),
    ],
)
async def test_a_graph_can_be_limited_to_types(kit: Kit, types: str, found: Any) -> None:
    assert related(await graph(kit, relationshipTypes=types)) == found


async def test_the_type_filter_also_holds_for_the_second_step(kit: Kit) -> None:
    found = await graph(kit, depth=2, relationshipTypes="CONCEPT_RELATES_TO_CONCEPT")
    assert related(found) == [("02", EMBEDDINGS), ("05", CONTEXT_WINDOW)]
    assert related(await graph(kit, depth=2, relationshipTypes="GUIDE_USES_CONCEPT")) == [
        ("01", GUIDE)
    ]


@pytest.mark.parametrize(
    "types",
    [
        "NOPE",
        "guide_uses_concept",
        "GUIDE_USES_CONCEPT,NOPE",
        "GUIDE_USES_CONCEPT, NOPE",
        "GUIDE_USES_CONCEPT;NEWS_REFERENCES_CONCEPT",
        "GUIDE_USES_CONCEPT,",
        ",",
        " ",
    ],
)
async def test_an_unknown_type_is_answered_with_all_nineteen(kit: Kit, types: str) -> None:
    told = await refused(kit, "get_entity_graph", relationshipTypes=types)
    assert told.endswith("Valid options: " + ", ".join(RELATION_TYPES))
    assert len(RELATION_TYPES) == 19


@pytest.mark.parametrize("types", [1, ["GUIDE_USES_CONCEPT"], True])
async def test_types_are_one_text(kit: Kit, types: Any) -> None:
    assert "relationshipTypes" in await refused(kit, "get_entity_graph", relationshipTypes=types)


# list_search_performance


async def test_records_have_their_twelve_fields(kit: Kit) -> None:
    assert len(RECORD) == 12
    rows = (await good(kit, "list_search_performance"))["data"]
    for row in rows:
        assert list(row) == RECORD
    assert [row["entityId"] for row in rows] == [None, CONTEXT_WINDOW, GUIDE, RAG]


async def test_records_come_latest_period_first(kit: Kit) -> None:
    rows = (await good(kit, "list_search_performance"))["data"]
    assert [row["dateStart"][:10] for row in rows] == [
        "2025-06-04", "2025-06-03", "2025-06-02", "2025-06-01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"query": "RAG"}, ["02", "01"]),
        ({"query": "What Is"}, ["01"]),
        ({"pageUrl": "CONCEPTS/"}, ["03", "01"]),
        ({"pageUrl": "concepts/", "query": "rag"}, ["01"]),
        ({"entityId": GUIDE}, ["02"]),
        ({"dateStart": "2025-06-03"}, ["04", "03"]),
        ({"dateStart": "2025-06-03T00:00:00.000Z"}, ["04", "03"]),
        ({"dateStart": "2025-06-03T00:00:00.001Z"}, ["04"]),
        ({"dateEnd": "2025-06-08"}, ["02", "01"]),
        ({"dateEnd": "2025-06-07T23:59:59.999Z"}, ["01"]),
        ({"dateStart": "2025-06-02", "dateEnd": "2025-06-09"}, ["03", "02"]),
        ({"dateStart": "2025-06-02", "dateEnd": "2025-06-02"}, []),
    ],
)
async def test_records_can_be_filtered(kit: Kit, filters: Any, numbers: list[str]) -> None:
    body = await good(kit, "list_search_performance", **filters)
    assert [id[-2:] for id in ids(body)] == numbers
    assert body["pagination"]["total"] == len(numbers)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2025-06-02", "2025-06-01"),
        ("2025-06-01T00:00:00.001Z", "2025-06-01"),
        ("2025-06-01T00:00:00.100Z", "2025-06-01T00:00:00.010Z"),
    ],
)
async def test_a_period_that_ends_before_it_begins_is_refused(
    kit: Kit, start: str, end: str
) -> None:
    told = await refused(kit, "list_search_performance", dateStart=start, dateEnd=end)
    assert told == "dateStart must be <= dateEnd"


# list_quotable_blocks


async def test_blocks_have_their_ten_fields(kit: Kit) -> None:
    assert len(BLOCK) == 10
    rows = (await good(kit, "list_quotable_blocks"))["data"]
    for row in rows:
        assert list(row) == BLOCK


async def test_the_demo_blocks_have_twenty_five_to_fifty_words(kit: Kit) -> None:
    for row in (await good(kit, "list_quotable_blocks"))["data"]:
        assert 25 <= len(row["text"].split()) <= 50
    assert len(BLOCKS) == 3


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, ["03", "02", "01"]),
        ({"entityId": RAG}, ["01"]),
        ({"claimType": "comparison"}, ["02"]),
        ({"topicTag": "rag"}, ["02", "01"]),
        ({"topicTag": "HUNK"}, ["03"]),
        ({"verifiedUntilBefore": "2025-12-31"}, ["03"]),
        ({"verifiedUntilBefore": "2025-12-30"}, []),
        ({"verifiedUntilAfter": "2025-12-31"}, ["03", "01"]),
        ({"verifiedUntilAfter": "2026-06-01"}, ["01"]),
        ({"verifiedUntilAfter": "2026-01-01", "verifiedUntilBefore": "2025-01-01"}, []),
        ({"verifiedUntilAfter": "0001-01-01"}, ["03", "01"]),
    ],
)
async def test_blocks_can_be_filtered(kit: Kit, filters: Any, numbers: list[str]) -> None:
    body = await good(kit, "list_quotable_blocks", **filters)
    assert [id[-2:] for id in ids(body)] == numbers


async def test_every_demo_entity_can_be_got_in_its_project(kit: Kit) -> None:
    for row in ENTITIES:
        body = await good(kit, "get_entity", projectId=row["project_id"], entityId=row["id"])
        assert body["data"]["title"] == row["title"]
