"""The tools of the pack, as their contract has them: projects and entities."""

import pytest
from tests.packs.content.seed_calls import (
    ENTITY,
    NOBODY,
    PROJECT,
    SCOPED_LISTS,
    ask,
    assert_missing,
    good,
    ids,
    refused,
)

from toolgate.packs.content.demo import (
    COMPOST,
    CONTEXT_WINDOW,
    EMBEDDINGS,
    GARDEN,
    GUIDE,
    NEWS,
    PSYMETRIC,
    RAG,
    TOOLKIT,
    VERSUS,
)
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


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
