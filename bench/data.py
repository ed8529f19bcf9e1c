"""Databases of a size that calls must not feel: ten million audit rows, a hundred thousand keys."""

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import anyio

from bench.installing import CACHE
from bench.racing import tell
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.gate.seals import MAX_ROWS
from toolgate.identity.keys import PREFIX

FILE = "toolgate.db"
AUDIT_ROWS = 10_000_000
STEP = 500_000
KEYS = 100_000

SEALS = f"""
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
INSERT INTO audit_seals (number, sealed_at, rows, entries, previous, hash)
SELECT i, '2026-01-01T00:00:00.000000Z', {MAX_ROWS}, zeroblob(40 * {MAX_ROWS}),
       randomblob(32), randomblob(32) FROM n
"""
ROWS = f"""
WITH RECURSIVE n(i) AS (SELECT :first UNION ALL SELECT i + 1 FROM n WHERE i < :last)
INSERT INTO audit (seq, id, created_at, request_id, transport, subject_type, subject_id, role_names,
                   group_ids, tool_name, decision, rule, status, duration_ms, seal)
SELECT i, printf('4d9be1fd063cdb74de58f1%010x', i), '2026-01-01T00:00:00.000000Z',
       printf('75abc94cfbcf79ca23f5ac%010x', i), 'mcp', 'key', printf('key:%016x', i % 1000),
       'user', '', 'echo', 'allow', 'user-tools', 'success', 1, (i - 1) / {MAX_ROWS} + 1 FROM n
"""
"""Sealed rows like those of a server that has run for long: the real table, the real indexes."""


def new_database(folder: Path) -> Path:
    """An empty database at the newest schema."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE

    async def make() -> None:
        database = Database(f"sqlite:///{file}")
        try:
            await upgrade(database)
        finally:
            await database.close()

    anyio.run(make)
    return file


def long_audited(count: int = AUDIT_ROWS) -> Path:
    """A folder with so many audit rows; made once, then kept. Runs add their own."""
    folder = CACHE / f"audit-{count}-{GATE.newest}"
    if (folder / "filled").exists():
        return folder
    tell(f"preparing {count:,} audit rows, once (about a minute, 3 GB)")
    began = time.monotonic()
    with closing(sqlite3.connect(new_database(folder), isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = OFF", "cache_size = -400000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("DELETE FROM audit")
        connection.execute("DELETE FROM audit_seals")
        connection.execute(SEALS, {"count": -(-count // MAX_ROWS)})
        for first in range(1, count + 1, STEP):
            last = min(first + STEP - 1, count)
            connection.execute(ROWS, {"first": first, "last": last})
            tell(f"  {last:,} rows after {time.monotonic() - began:.0f} s")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / "filled").touch()
    return folder


def with_keys(folder: Path, count: int) -> list[str]:
    """A database with so many users' keys; the keys."""
    file = new_database(folder)
    made: list[str] = []
    with closing(sqlite3.connect(file)) as connection, connection:
        rows = _key_rows(count, made)
        while batch := list(islice(rows, 10_000)):
            connection.executemany(
                "INSERT INTO keys (id, hash, role, user_id, created_at) VALUES (?, ?, ?, ?, ?)",
                batch,
            )
    return made


def _key_rows(count: int, made: list[str]) -> Iterator[tuple[str, bytes, str, str, str]]:
    now = timestamp()
    for number in range(count):
        id = secrets.token_hex(8)
        key = f"{PREFIX}_{id}_{secrets.token_hex(32)}"
        made.append(key)
        yield id, hashlib.sha256(key.encode()).digest(), "user", f"user-{number}", now
