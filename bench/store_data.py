"""A thousand or a million documents with their index, and as many leaves of a tree.

Written in bulk, but what the adapters would write. SQLite's file and PostgreSQL's folder are made
once, then kept below .cache/bench; runs add their own.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
import psycopg

from bench.racing import tell
from toolgate.adapters.sql.documents.index import CollectionIndex
from toolgate.adapters.sql.tree.paths import encoded
from toolgate.ports.documents import Fields

NAMESPACE, COLLECTION = "appdata", "transactions"
FOUND = 20
"""Documents of each user."""
STEP = 50_000
KINDS = ("expense", "income", "transfer", "settlement")

Document = tuple[str, str, str, str]
Entry = tuple[int, bytes, str]
Leaf = tuple[str, bytes, str]


def fields_of(number: int, count: int) -> Fields:
    """Fields of one of so many documents."""
    day = number % 365
    return {
        "userId": user(number, count),
        "type": KINDS[number % 4],
        "amount": number % 100_000 / 100,
        "category": f"category {number % 50}",
        "date": f"2025-{day // 31 + 1:02}-{day % 31 + 1:02}T10:00:00Z",
    }


def user(number: int, count: int) -> str:
    return f"user-{number % (count // FOUND)}"


def leaf(number: int) -> str:
    """The path of one child."""
    return f"scores/player-{number:07}"


def _documents(count: int) -> Iterator[tuple[Document, list[Entry]]]:
    index, ids = CollectionIndex(NAMESPACE, COLLECTION, frozenset()), random.Random(count)
    for number in range(count):
        # Among all ids that there can be, as random ones are, but in order: that loads faster.
        id = f"{(number << 80) // count + ids.getrandbits(50):020x}"
        fields = fields_of(number, count)
        row = (NAMESPACE, COLLECTION, id, orjson.dumps(fields).decode())
        yield row, [(field, key, id) for field, key in index.entries(fields)]


def _leaves(count: int) -> Iterator[Leaf]:
    for number in range(count):
        yield NAMESPACE, encoded(leaf(number).split("/")), str(number)


def fill_sqlite(file: Path, count: int) -> None:
    """Fill a database at the newest schema."""
    told = _Progress(count)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = OFF", "cache_size = -400000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TEMP TABLE entries (field, key, id)")
        add = "INSERT INTO documents (namespace, collection, id, fields) VALUES (?, ?, ?, ?)"
        for batch in _batches(_documents(count)):
            connection.execute("BEGIN")
            connection.executemany(add, [row for row, _ in batch])
            entries = [one for _, some in batch for one in some]
            connection.executemany("INSERT INTO entries VALUES (?, ?, ?)", entries)
            connection.execute("COMMIT")
            told.more(len(batch), "documents")
        # In the order in which they are kept: ten times as fast as in that of the documents.
        connection.execute(
            "INSERT INTO document_index (field, key, id) SELECT * FROM entries ORDER BY 1, 2, 3"
        )
        told.say("their entries")
        for batch in _batches(_leaves(count)):
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO tree_nodes VALUES (?, ?, ?)", batch)
            connection.execute("COMMIT")
        told.say("leaves")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def fill_postgres(url: str, count: int) -> None:
    """The same; statistics as its own autovacuum would make them some minutes later."""
    told = _Progress(count)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute("ALTER TABLE document_index DROP CONSTRAINT pk_document_index")
        for batch in _batches(_documents(count)):
            rows = [row for row, _ in batch]
            _copy(connection, "documents (namespace, collection, id, fields)", rows)
            entries = [one for _, some in batch for one in some]
            _copy(connection, "document_index (field, key, id)", entries)
            told.more(len(batch), "documents")
        connection.execute(
            "ALTER TABLE document_index"
            " ADD CONSTRAINT pk_document_index PRIMARY KEY (field, key, id)"
        )
        told.say("their entries")
        for batch in _batches(_leaves(count)):
            _copy(connection, "tree_nodes (namespace, path, value)", batch)
        told.say("leaves")
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def read_into_memory(url: str) -> None:
    """Tables and indexes into PostgreSQL's memory, where a server that runs for long has them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm")
        connection.execute(
            "SELECT pg_prewarm(oid) FROM pg_class WHERE relkind IN ('r', 'i')"
            " AND relnamespace = 'public'::regnamespace"
        )


def _copy(connection: psycopg.Connection[Any], into: str, rows: list[Any]) -> None:
    with connection.cursor().copy(f"COPY {into} FROM STDIN".encode()) as copy:
        for row in rows:
            copy.write_row(row)


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, STEP)):
        yield batch


class _Progress:
    """Tells how far the loading is."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._done = 0
        self._began = time.monotonic()

    def more(self, count: int, what: str) -> None:
        self._done += count
        if self._done % (4 * STEP) == 0 or self._done == self._count:
            self.say(f"{self._done:,} {what}")

    def say(self, what: str) -> None:
        tell(f"  {self._count:,}: {what} after {time.monotonic() - self._began:.0f} s")
