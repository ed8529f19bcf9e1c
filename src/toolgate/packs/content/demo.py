"""Demo content: two projects, so that the border between them can be seen."""

from typing import Any

from sqlalchemy import Connection, select

from toolgate.gate.offer import Site
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import store
from toolgate.packs.content.store import Row
from toolgate.packs.content.world import ContentWorld

PSYMETRIC = "00000000-0000-4000-a000-000000000001"
GARDEN = "00000000-0000-4000-a000-000000000002"
RAG = "00000000-0000-4000-a000-000000000101"
EMBEDDINGS = "00000000-0000-4000-a000-000000000102"
CONTEXT_WINDOW = "00000000-0000-4000-a000-000000000103"
VERSUS = "00000000-0000-4000-a000-000000000104"
GUIDE = "00000000-0000-4000-a000-000000000105"
NEWS = "00000000-0000-4000-a000-000000000106"
TOOLKIT = "00000000-0000-4000-a000-000000000107"
COMPOST = "00000000-0000-4000-a000-000000000201"
VIDEO = "00000000-0000-4000-a000-000000000901"


def _day(day: int) -> str:
    return f"2025-06-{day:02}T09:00:00.000Z"


def _project(id: str, slug: str, name: str, description: str) -> Row:
    created = _day(1)
    return {
        "id": id,
        "slug": slug,
        "name": name,
        "description": description,
        "created_at": created,
        "updated_at": created,
    }


PROJECTS = (
    _project(PSYMETRIC, "psymetric", "PsyMetric", "How language models work, explained."),
    _project(GARDEN, "garden-notes", "Garden Notes", "What grows, and why."),
)


def _entity(id: str, day: int, kind: str, title: str, slug: str, **further: Any) -> Row:
    created = _day(day)
    return {
        "id": id,
        "project_id": PSYMETRIC,
        "entity_type": kind,
        "title": title,
        "slug": slug,
        "status": "published",
        "created_at": created,
        "updated_at": created,
    } | further


ENTITIES = (
    _entity(RAG, 2, "concept", "Retrieval-Augmented Generation", "rag", concept_kind="standard"),
    _entity(EMBEDDINGS, 3, "concept", "Embeddings", "embeddings", concept_kind="standard"),
    _entity(CONTEXT_WINDOW, 4, "concept", "Context window", "context-window", concept_kind="model"),
    _entity(
        VERSUS, 5, "concept", "RAG or fine-tuning", "rag-or-fine-tuning", concept_kind="comparison"
    ),
    _entity(
        GUIDE,
        6,
        "guide",
        "Build a small RAG system",
        "build-a-small-rag-system",
        summary="From a folder of notes to answers with sources.",
        difficulty="beginner",
        canonical_url="https://psymetric.example/guides/build-a-small-rag-system",
        last_verified_at=_day(20),
    ),
    _entity(NEWS, 7, "news", "Context windows grow again", "context-windows-grow", status="draft"),
    _entity(
        TOOLKIT,
        8,
        "project",
        "RAG toolkit",
        "rag-toolkit",
        repo_url="https://code.example/psymetric/rag-toolkit",
    ),
    _entity(COMPOST, 2, "guide", "Compost in a small space", "compost", project_id=GARDEN),
)


def _relation(  # noqa: PLR0917
    number: int, day: int, kind: str, begins: Row, ends: Row, note: str = ""
) -> Row:
    return {
        "id": f"00000000-0000-4000-a000-0000000003{number:02}",
        "project_id": PSYMETRIC,
        "relation_type": kind,
        "from_type": begins["entity_type"],
        "from_id": begins["id"],
        "to_type": ends["entity_type"],
        "to_id": ends["id"],
        "notes": note or None,
        "created_at": _day(day),
    }


_BY_ID = {row["id"]: row for row in ENTITIES}
_VIDEO = {"id": VIDEO, "entity_type": "video"}

RELATIONS = (
    _relation(1, 10, "GUIDE_USES_CONCEPT", _BY_ID[GUIDE], _BY_ID[RAG], "The whole guide."),
    _relation(2, 11, "CONCEPT_RELATES_TO_CONCEPT", _BY_ID[RAG], _BY_ID[EMBEDDINGS]),
    _relation(3, 12, "NEWS_REFERENCES_CONCEPT", _BY_ID[NEWS], _BY_ID[CONTEXT_WINDOW]),
    _relation(4, 13, "PROJECT_IMPLEMENTS_CONCEPT", _BY_ID[TOOLKIT], _BY_ID[RAG]),
    _relation(5, 14, "CONCEPT_RELATES_TO_CONCEPT", _BY_ID[EMBEDDINGS], _BY_ID[CONTEXT_WINDOW]),
    _relation(6, 15, "VIDEO_EXPLAINS_CONCEPT", _VIDEO, _BY_ID[RAG]),
)


def _record(  # noqa: PLR0917
    number: int, query: str, page: str, impressions: int, clicks: int, entity: str | None
) -> Row:
    return {
        "id": f"00000000-0000-4000-a000-0000000004{number:02}",
        "project_id": PSYMETRIC,
        "entity_id": entity,
        "page_url": f"https://psymetric.example/{page}",
        "query": query,
        "impressions": impressions,
        "clicks": clicks,
        "ctr": round(clicks / impressions, 4),
        "avg_position": 4.0 + number,
        "date_start": _day(number).replace("T09", "T00"),
        "date_end": _day(number + 6).replace("T09", "T00"),
        "captured_at": _day(number + 9),
    }


PERFORMANCE = (
    _record(1, "what is rag", "concepts/rag", 1200, 84, RAG),
    _record(2, "rag tutorial", "guides/build-a-small-rag-system", 640, 71, GUIDE),
    _record(3, "context window size", "concepts/context-window", 310, 9, CONTEXT_WINDOW),
    _record(4, "psymetric", "", 45, 30, None),
)


def _block(  # noqa: PLR0917
    number: int, entity: str, claim: str, text: str, tag: str, until: str | None
) -> Row:
    created = _day(number)
    return {
        "id": f"00000000-0000-4000-a000-0000000005{number:02}",
        "project_id": PSYMETRIC,
        "entity_id": entity,
        "text": text,
        "claim_type": claim,
        "source_citation": None,
        "verified_until": until,
        "topic_tag": tag,
        "created_at": created,
        "updated_at": created,
    }


BLOCKS = (
    _block(
        1,
        RAG,
        "definition",
        "Retrieval-augmented generation gives a language model passages that were looked up for "
        "the question at hand, so that its answer can rest on sources that are newer than its "
        "training and can be named.",
        "RAG",
        "2026-06-01T00:00:00.000Z",
    ),
    _block(
        2,
        VERSUS,
        "comparison",
        "Retrieval changes what a model is told, fine-tuning changes how it behaves: the first is "
        "the better choice for facts that change, the second for a tone or a form that stays.",
        "RAG",
        None,
    ),
    _block(
        3,
        GUIDE,
        "howto_step",
        "Cut each document into passages of a few hundred words that overlap a little, because a "
        "passage that begins in the middle of a thought is seldom found and hardly understood.",
        "chunking",
        "2025-12-31T00:00:00.000Z",
    ),
)


async def load_demo(world: ContentWorld, site: Site) -> int:
    """Store the demo's projects and all in them, unless there are projects already."""
    return await site.database.write(_store_all)


def _store_all(connection: Connection) -> int:
    if connection.execute(select(tables.projects.c.id)).first() is not None:
        return 0
    every = (
        (tables.projects, PROJECTS),
        (tables.entities, ENTITIES),
        (tables.relations, RELATIONS),
        (tables.performance, PERFORMANCE),
        (tables.blocks, BLOCKS),
    )
    for table, rows in every:
        store(connection, table, rows)
    return sum(len(rows) for _, rows in every)
