"""Files of content for tests, and a place to import them."""

import csv
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from sqlalchemy import select
from tests.databases import upgrade_all

from toolgate.db.engine import Database
from toolgate.packs.content.importing import ImportOptions, Report, import_file
from toolgate.packs.content.sql import tables

VIDEO = "00000000-0000-4000-a000-000000000901"
MADE = "2025-06-01T09:00:00.000Z"
ENTITIES = [
    {
        "entityType": "concept",
        "title": "Retrieval",
        "slug": "rag",
        "conceptKind": "standard",
        "summary": "Two\nlines, “quoted”",
        "createdAt": MADE,
        "updatedAt": MADE,
    },
    {
        "entityType": "guide",
        "title": "Build",
        "slug": "build",
        "difficulty": "beginner",
        "status": "published",
        "createdAt": MADE,
        "updatedAt": "2025-06-02",
    },
    {
        "id": "00000000-0000-4000-A000-000000000107",
        "entityType": "project",
        "title": "Kit",
        "slug": "kit",
        "repoUrl": "https://code.example/kit",
        "createdAt": MADE,
        "updatedAt": MADE,
    },
]
ROWS: dict[str, list[dict[str, Any]]] = {
    "entities": ENTITIES,
    "relations": [
        {"relationType": "GUIDE_USES_CONCEPT", "from": "guide/build", "to": "concept/rag"},
        {"relationType": "VIDEO_EXPLAINS_CONCEPT", "from": VIDEO, "to": "concept/rag"},
        {
            "relationType": "PROJECT_IMPLEMENTS_CONCEPT",
            "from": "00000000-0000-4000-a000-000000000107",
            "to": "concept/rag",
            "notes": "all of it",
        },
    ],
    "blocks": [
        {
            "entityId": "concept/rag",
            "text": "It looks things up, then answers.",
            "claimType": "definition",
            "topicTag": "RAG",
            "verifiedUntil": "2026-06-01",
        }
    ],
    "performance": [
        {
            "query": "what is rag",
            "pageUrl": "https://x.example/rag",
            "impressions": 1200,
            "clicks": 84,
            "avgPosition": 4.5,
            "dateStart": "2025-06-01",
            "dateEnd": "2025-06-07",
            "entityId": "concept/rag",
        }
    ],
}
TABLES = {
    "entities": tables.entities,
    "relations": tables.relations,
    "blocks": tables.blocks,
    "performance": tables.performance,
}


class Place:
    """A database with the project, and a folder for files."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def rows_file(self, name: str, rows: list[dict[str, Any]]) -> Path:
        path = self.folder / name
        if name.endswith(".jsonl"):
            return self.file(name, "".join(json.dumps(row) + "\n" for row in rows))
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        return path

    async def load(
        self, path: Path, seen: Callable[[int], None] = lambda _: None, **wanted: Any
    ) -> Report:
        wanted = {"project": "p", "create_project": "P"} | wanted
        return await import_file(self.database, path, ImportOptions(**wanted), seen)

    async def rows(self, kind: str) -> list[dict[str, Any]]:
        table = TABLES[kind]
        return await self.database.read(
            lambda c: [dict(row) for row in c.execute(select(table).order_by("id")).mappings()]
        )


async def opened(url: str, folder: Path) -> AsyncIterator[Place]:
    """The place, on a new database."""
    database = Database(url)
    await upgrade_all(database)
    yield Place(database, folder)
    await database.close()


FIGURES = ROWS["performance"][0] | {"entityId": ""}
