"""Content of any size in any number of projects, the same on every run."""

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table

from toolgate.db.engine import Database
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import store

NEEDLE = "Zebra Crossing"
NEEDLES = 300
"""Rows with the needle in each of the first projects, however many rows there are."""
WITH_NEEDLES = 5
DEGREE = 1000
BATCH = 5000
MADE = "2025-01-01T00:00:00.000Z"
WORDS = [
    "how", "what", "best", "guide", "embeddings", "vector", "context", "window", "model",
    "prompt", "agent", "tool", "python", "compare", "cheap", "fast", "local", "cloud", "open",
    "source", "benchmark", "token", "cost", "latency", "retrieval", "chunking", "reranker",
    "judge", "memory", "garden", "compost", "letter", "paper", "quiet", "river", "stone",
    "winter", "summer", "bread", "butter",
]  # fmt: skip


def project(number: int) -> str:
    return str(uuid.UUID(int=(1 << 64) + number, version=4))


def entity(number: int) -> str:
    return str(uuid.UUID(int=(2 << 64) + number, version=4))


MINE, ROOT = project(0), entity(0)
"""The project and the entity that are read."""


def day(chance: random.Random) -> str:
    return f"2025-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}T00:00:00.000Z"


def words(chance: random.Random, number: int, many: int) -> str:
    """Different for every number of a project."""
    told = " ".join(chance.choices(WORDS, k=4))
    has_needle = number // many < NEEDLES and number % many < WITH_NEEDLES
    needle = f" {NEEDLE}" if has_needle else ""
    return f"{told}{needle} {number // many}"


def projects(many: int) -> Iterator[dict[str, Any]]:
    for number in range(many):
        made = {"created_at": MADE, "updated_at": MADE}
        yield {"id": project(number), "slug": f"p{number}", "name": f"Project {number}"} | made


def entities(count: int, many: int) -> Iterator[dict[str, Any]]:
    """The first `1 + 3 * DEGREE` are in the first project, for the graph."""
    chance = random.Random(1)
    for number in range(1 + 3 * DEGREE + count):
        in_graph = number <= 3 * DEGREE
        made = day(chance)
        yield {
            "id": entity(number),
            "project_id": project(0 if in_graph else number % many),
            "entity_type": "concept",
            "title": f"graph {number}" if in_graph else words(chance, number, many),
            "slug": f"e{number}",
            "status": "published",
            "created_at": made,
            "updated_at": made,
        }


def relations() -> Iterator[dict[str, Any]]:
    """The root has DEGREE neighbours, each of which has two of its own."""
    pairs = [(0, 1 + number) for number in range(DEGREE)]
    pairs += [(1 + number % DEGREE, 1 + DEGREE + number) for number in range(2 * DEGREE)]
    chance = random.Random(2)
    for number, (begins, ends) in enumerate(pairs):
        yield {
            "id": str(uuid.UUID(int=(3 << 64) + number, version=4)),
            "project_id": MINE,
            "relation_type": "CONCEPT_RELATES_TO_CONCEPT",
            "from_type": "concept",
            "from_id": entity(begins),
            "to_type": "concept",
            "to_id": entity(ends),
            "created_at": day(chance),
        }


def performance(count: int, many: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(3)
    for number in range(count):
        address = f"{chance.choice(WORDS)}/{chance.choice(WORDS)}-{chance.randrange(2000)}"
        shown = chance.randrange(1, 10_000)
        when = day(chance)
        yield {
            "id": str(
                uuid.UUID(int=(4 << 64) + chance.getrandbits(40) * 2**21 + number, version=4)
            ),
            "project_id": project(number % many),
            "page_url": f"https://site.example/{address}",
            "query": words(chance, number, many),
            "impressions": shown,
            "clicks": shown // 9,
            "ctr": shown // 9 / shown,
            "avg_position": 1 + chance.random() * 50,
            "date_start": when,
            "date_end": when,
            "captured_at": MADE,
        }


@dataclass(frozen=True)
class Size:
    """How much content, in how many projects."""

    projects: int
    rows: int
    entities: int


async def fill(database: Database, size: Size) -> None:
    """Load everything, in transactions of a bounded size."""
    many = size.projects
    await _load(database, tables.projects, projects(many))
    await _load(database, tables.entities, entities(size.entities, many))
    await _load(database, tables.relations, relations())
    await _load(database, tables.performance, performance(size.rows, many))


async def _load(database: Database, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(rows, BATCH)):

        def work(connection: Connection, batch: list[dict[str, Any]] = batch) -> None:
            store(connection, table, batch)

        await database.write(work)
