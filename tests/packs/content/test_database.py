"""What the content tables refuse, and odd rows that both databases show alike."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, func, insert, select
from sqlalchemy.exc import IntegrityError

from toolgate.packs.content import demo
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
from toolgate.packs.content.sql.tables import blocks, entities, performance, projects, relations
from toolgate.packs.content.sql.upserts import store
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

Row = dict[str, Any]
NEW = "00000000-0000-4000-a000-000000000f00"


@pytest.fixture
async def kit(database_url: str, tmp_path: Path) -> AsyncIterator[Kit]:
    """A gate with the demo content on either database."""
    async with opened_kit(tmp_path, demo_data=True, database__url=database_url) as opened:
        yield opened


async def add(kit: Kit, table: Table, *rows: Row) -> None:
    await kit.app.gate.database.write(lambda connection: store(connection, table, rows))


async def count(kit: Kit, table: Table) -> int:
    many = select(func.count()).select_from(table)
    return await kit.app.gate.database.read(
        lambda connection: connection.execute(many).scalar_one()
    )


def like(row: Row, **other: Any) -> Row:
    """A new row that differs from one of the demo in this."""
    return {**row, "id": NEW, **other}


CONCEPT, NEWS_ROW, TOOL = demo.ENTITIES[0], demo.ENTITIES[5], demo.ENTITIES[6]
RECORD, BLOCK, EDGE = demo.PERFORMANCE[0], demo.BLOCKS[0], demo.RELATIONS[1]

REFUSED: dict[str, tuple[Table, Row]] = {
    "more clicks than impressions": (
        performance, like(RECORD, query="x", impressions=1, clicks=2)
    ),
    "clicks below zero": (performance, like(RECORD, query="x", clicks=-1)),
    "a click rate above one": (performance, like(RECORD, query="x", ctr=1.01)),
    "a click rate below zero": (performance, like(RECORD, query="x", ctr=-0.01)),
    "a click rate that is no number": (performance, like(RECORD, query="x", ctr=float("nan"))),
    "position zero": (performance, like(RECORD, query="x", avg_position=0)),
    "a position below zero": (performance, like(RECORD, query="x", avg_position=-1)),
    "a record of another project's entity": (
        performance, like(RECORD, query="x", entity_id=COMPOST)
    ),
    "a record of no project": (performance, like(RECORD, project_id=NEW, entity_id=None)),
    "a project without a repository": (entities, like(TOOL, slug="x", repo_url=None)),
    "a guide with a concept kind": (
        entities, like(CONCEPT, slug="x", entity_type="guide", concept_kind="model")
    ),
    "an unknown entity type": (
        entities, like(CONCEPT, slug="x", entity_type="video", concept_kind=None)
    ),
    "an unknown status": (entities, like(CONCEPT, slug="x", status="Draft")),
    "an unknown difficulty": (entities, like(CONCEPT, slug="x", difficulty="easy")),
    "an unknown concept kind": (entities, like(CONCEPT, slug="x", concept_kind="other")),
    "an entity without a title": (entities, like(CONCEPT, slug="x", title=None)),
    "an entity of no project": (entities, like(CONCEPT, project_id=NEW)),
    "an edge to another project's entity": (
        relations, like(EDGE, to_type="guide", to_id=COMPOST)
    ),
    "an edge from another project's entity": (
        relations, like(EDGE, from_type="guide", from_id=COMPOST)
    ),
    "an edge of another project": (relations, like(EDGE, project_id=GARDEN)),
    "an edge to no entity": (relations, like(EDGE, to_id=NEW)),
    "an unknown relation type": (relations, like(EDGE, relation_type="NOPE")),
    "a block of another project's entity": (blocks, like(BLOCK, entity_id=COMPOST)),
    "a block of no entity": (blocks, like(BLOCK, entity_id=None)),
    "an unknown claim type": (blocks, like(BLOCK, claim_type="opinion")),
    "a second project with the id of another": (
        projects, {**demo.PROJECTS[0], "slug": "another"}
    ),
}  # fmt: skip


async def test_the_database_refuses_rows_that_break_a_rule(kit: Kit) -> None:
    for what, (table, row) in REFUSED.items():
        before = await count(kit, table)
        try:
            await add(kit, table, row)
        except IntegrityError:
            pass
        else:
            pytest.fail(f"{what} was stored")
        assert await count(kit, table) == before, what


async def test_the_database_refuses_a_second_row_with_the_same_natural_key(kit: Kit) -> None:
    folded = {"title_folded": "x", "slug_folded": "x"}
    twice: list[tuple[Table, Row]] = [
        (projects, like(demo.PROJECTS[0])),
        (entities, like(CONCEPT, **folded)),
        (relations, like(EDGE, from_entity=EDGE["from_id"], to_entity=EDGE["to_id"])),
        (performance, like(RECORD, query_folded="x", page_url_folded="x")),
        (blocks, BLOCK),
    ]
    for table, row in twice:
        with pytest.raises(IntegrityError):
            await kit.app.gate.database.write(
                lambda connection, table=table, row=row: connection.execute(
                    insert(table).values(row)
                )
            )


async def test_a_slug_is_free_in_another_type_and_in_another_project(kit: Kit) -> None:
    before = await count(kit, entities)
    await add(
        kit,
        entities,
        like(CONCEPT, entity_type="news", concept_kind=None),
        like(CONCEPT, id=NEW[:-1] + "1", project_id=GARDEN),
    )
    assert await count(kit, entities) == before + 2


async def test_storing_again_replaces_all_but_the_id_and_the_first_date(kit: Kit) -> None:
    before = await count(kit, entities)
    made = "2030-01-01T00:00:00.000Z"
    await add(kit, entities, like(CONCEPT, title="ÉTÉ", created_at=made, updated_at=made))
    assert await count(kit, entities) == before
    found = await kit.call("search_entities", projectId=PSYMETRIC, search="été")
    (row,) = found.body["data"]
    assert (row["id"], row["title"]) == (RAG, "ÉTÉ")
    assert (row["createdAt"], row["updatedAt"]) == (CONCEPT["created_at"], made)


# Odd text


TITLES = [
    ("Straße", "STRASSE", True),
    ("STRASSE", "straße", True),
    ("Éclair", "éCLAIR", True),
    ("Éclair", "eclair", False),
    ("ΣΊΣΥΦΟΣ", "σίσυφος", True),
    ("İstanbul", "i\u0307stanbul", True),
    ("İstanbul", "istanbul", False),
    ("Iğdır", "iğdır", True),
    ("100 % sure", "0 %", True),
    ("100 sure", "0%s", False),
    ("snake_case", "E_C", True),
    ("snakecase", "e_c", False),
    ("back\\slash", "K\\S", True),
    ("it's", "'S", True),
    ("thumbs 👍🏽 up", "👍", True),
    ("thumbs 👍🏽 up", "👎", False),
    ("anything", "any\0", False),
    ("two\nlines", "O\nL", True),
]
"""A title, what to look for, and whether that is in it."""


async def test_a_search_ignores_case_and_nothing_else(kit: Kit) -> None:
    for number, (title, text, found) in enumerate(TITLES):
        id = f"{NEW[:-2]}{number:02}"
        await add(kit, entities, like(NEWS_ROW, id=id, slug=f"{number}", title=title))
        outcome = await kit.call("search_entities", projectId=PSYMETRIC, search=text, limit=100)
        assert outcome.error is None, outcome.text
        assert (id in [row["id"] for row in outcome.body["data"]]) is found, (title, text)


async def test_text_is_ordered_by_code_point(kit: Kit) -> None:
    slugs = ["Z", "a", "a-b", "ab", "b", "z", "ß", "ä", "é", "😀", "_", "A"]
    made = [
        like(demo.PROJECTS[1], id=f"{NEW[:-2]}{number:02}", slug=slug)
        for number, slug in enumerate(slugs)
    ]
    await add(kit, projects, *made)
    listed = (await kit.call("list_projects", limit=100)).body["data"]
    expected = sorted([*slugs, "psymetric", "garden-notes"])
    assert [row["slug"] for row in listed] == expected


# Ties


async def test_search_performance_of_one_period_comes_by_query_then_page_then_id(kit: Kit) -> None:
    """Each of the later keys alone decides one neighbouring pair; no two keys agree."""
    keys = [
        ("b", "https://x.example/2"),
        ("a", "https://x.example/3"),
        ("b", "https://x.example/1"),
    ]
    rows = [
        like(RECORD, id=f"{NEW[:-2]}{number:02}", query=query, page_url=page)
        for number, (query, page) in enumerate(keys)
    ]
    await add(kit, performance, *rows)
    asked = {"projectId": PSYMETRIC, "pageUrl": "x.example"}
    found = await kit.send("list_search_performance", asked)
    shown = [(row["query"], row["pageUrl"]) for row in found.body["data"]]
    assert shown == [keys[1], keys[2], keys[0]]


async def test_entities_of_one_moment_come_by_id_from_the_last(kit: Kit) -> None:
    made = "2031-01-01T00:00:00.000Z"
    ids = [f"{NEW[:-1]}{digit}" for digit in "3a1f"]
    rows = [like(NEWS_ROW, id=id, slug=id, created_at=made) for id in ids]
    await add(kit, entities, *rows)
    listed = (await kit.call("search_entities", projectId=PSYMETRIC, limit=4)).body["data"]
    assert [row["id"] for row in listed] == sorted(ids, reverse=True)


# Edges


def edge(number: int, begins: str, ends: str, **other: Any) -> Row:
    types = {row["id"]: row["entity_type"] for row in demo.ENTITIES}
    return {
        "id": f"{NEW[:-2]}{number:02}",
        "project_id": PSYMETRIC,
        "relation_type": "CONCEPT_RELATES_TO_CONCEPT",
        "from_type": types[begins],
        "from_id": begins,
        "to_type": types[ends],
        "to_id": ends,
        "created_at": f"2032-01-{number:02}T00:00:00.000Z",
        **other,
    }


async def related(kit: Kit, root: str, depth: int) -> dict[str, str | None]:
    """Of each edge that was added here: the entity it leads to."""
    outcome = await kit.call("get_entity_graph", projectId=PSYMETRIC, entityId=root, depth=depth)
    return {
        row["id"][-2:]: row["relatedEntity"] and row["relatedEntity"]["id"]
        for row in outcome.body["data"]["relationships"]
        if row["id"].startswith(NEW[:-2])
    }


async def test_a_self_relation_leads_to_no_entity(kit: Kit) -> None:
    await add(kit, relations, edge(1, VERSUS, VERSUS))
    assert await related(kit, VERSUS, 1) == {"01": None}
    assert await related(kit, VERSUS, 2) == {"01": None}


async def test_a_self_relation_of_a_neighbour_leads_to_no_entity(kit: Kit) -> None:
    await add(kit, relations, edge(1, VERSUS, NEWS), edge(2, NEWS, NEWS))
    assert await related(kit, VERSUS, 2) == {"01": NEWS, "02": None}


async def test_an_edge_between_two_neighbours_leads_to_where_it_points(kit: Kit) -> None:
    await add(kit, relations, edge(1, GUIDE, EMBEDDINGS), edge(2, TOOLKIT, GUIDE))
    assert await related(kit, RAG, 1) == {}
    assert await related(kit, RAG, 2) == {"01": EMBEDDINGS, "02": GUIDE}


async def test_an_edge_that_points_to_a_neighbour_leads_to_where_it_begins(kit: Kit) -> None:
    await add(kit, relations, edge(1, VERSUS, EMBEDDINGS))
    assert await related(kit, RAG, 2) == {"01": VERSUS}


async def test_edges_both_ways_are_each_shown_once(kit: Kit) -> None:
    await add(kit, relations, edge(1, VERSUS, NEWS), edge(2, NEWS, VERSUS))
    assert await related(kit, VERSUS, 1) == {"01": NEWS, "02": NEWS}
    assert await related(kit, VERSUS, 2) == {"01": NEWS, "02": NEWS}


async def test_what_is_no_entity_is_no_step(kit: Kit) -> None:
    source = {"to_type": "sourceItem", "to_id": NEW}
    await add(kit, relations, edge(1, VERSUS, RAG, **source), edge(2, NEWS, RAG, **source))
    assert await related(kit, VERSUS, 2) == {"01": None}


async def test_a_third_step_is_not_taken(kit: Kit) -> None:
    await add(kit, relations, edge(1, CONTEXT_WINDOW, VERSUS))
    assert await related(kit, GUIDE, 2) == {}
    assert await related(kit, RAG, 2) == {}
    assert await related(kit, EMBEDDINGS, 2) == {"01": VERSUS}
