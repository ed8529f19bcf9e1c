"""The graph around an entity, as the contract has it."""

from typing import Any

import pytest
from tests.packs.content.seed_calls import EDGE, good, refused

from toolgate.packs.content.demo import (
    CONTEXT_WINDOW,
    EMBEDDINGS,
    GUIDE,
    RAG,
    TOOLKIT,
    VERSUS,
    VIDEO,
)
from toolgate.packs.content.vocabulary import RELATION_TYPES
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


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
