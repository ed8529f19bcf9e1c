"""Tables are made once per kind of database; each test still begins with an empty one.

Migrations take ten times as long as most tests. So what the first upgrade at start has made is
kept, as the bytes of a SQLite file and as a schema of PostgreSQL with another name, and the next
upgrade at start of an empty database finds it. Everything else is migrated as ever.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import scalar_row
from psycopg.sql import SQL, Identifier, Literal

from toolgate.data_folder import embedded_file
from toolgate.db import upgrades
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE, Schema

Key = tuple[str, ...]
"""The revisions of all tables."""
KEPT = "kept"
MAX_BYTES = 16 * 1024 * 1024
"""Tables with more in them are dropped sooner than emptied."""
SHAPE = """
SELECT md5(string_agg(line, chr(10) ORDER BY line)) FROM (
  SELECT concat_ws(' ', relkind, relname, relowner, relacl, reloptions) AS line FROM pg_class
    WHERE relnamespace = 'public'::regnamespace
  UNION ALL
  SELECT concat_ws(' ', relname, attnum, attname, atttypid, attnotnull, pg_get_expr(adbin, adrelid))
    FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0
  UNION ALL
  SELECT concat_ws(' ', contype, conname, convalidated) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL
  SELECT concat_ws(' ', proname, md5(prosrc)) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
  UNION ALL
  SELECT concat_ws(' ', tgname, tgenabled) FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid
    WHERE relnamespace = 'public'::regnamespace AND NOT tgisinternal
  UNION ALL
  SELECT concat_ws(' ', 'schema', nspacl, nspowner) FROM pg_namespace WHERE nspname = 'public'
) AS lines
"""
"""Everything that tells one schema from another, but not the rows."""
BYTES = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
  WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
"""
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename"
RESTART = """
SELECT setval(format('%I', sequencename)::regclass, start_value, false) FROM pg_sequences
  WHERE schemaname = 'public'
"""
Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Made:
    """What migrations left in a schema of PostgreSQL."""

    key: Key
    shape: str
    rows: dict[str, list[str]]
    """The rows of each table, as PostgreSQL writes them."""


class Room:
    """A database of PostgreSQL that is emptied for each test.

    At most one schema is kept aside: extensions are in one schema of a database only.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.keeping = False
        """Whether the test at hand may be given a schema that was kept."""
        self._public: Made | None = None
        self._kept: Made | None = None

    def empty(self, *, keeping: bool) -> None:
        """Make the database empty; with `keeping`, its tables may come back."""
        self.keeping = keeping
        with self._connect() as connection:
            made, self._public = self._public, None
            if keeping and made and _is_as_made(connection, made):
                connection.execute(f"DROP SCHEMA IF EXISTS {KEPT} CASCADE")
                _restore_rows(connection, made)
                connection.execute(f"ALTER SCHEMA public RENAME TO {KEPT}")
                self._kept = made
            else:
                connection.execute("DROP SCHEMA public CASCADE")
                if not keeping:
                    self._drop_kept(connection)
            connection.execute("CREATE SCHEMA public")

    def bring_back(self, key: Key) -> bool:
        """Put the tables of these revisions into the empty database, if they were kept."""
        with self._connect() as connection:
            if self._kept and self._kept.key == key:
                connection.execute("DROP SCHEMA public")
                connection.execute(f"ALTER SCHEMA {KEPT} RENAME TO public")
                self._public, self._kept = self._kept, None
                return True
            self._drop_kept(connection)
            return False

    def note(self, key: Key) -> None:
        """The database holds what migrations have just made."""
        with self._connect() as connection:
            shape = connection.execute(SHAPE).fetchone()
            self._public = Made(
                key, shape, {one: _rows(connection, one) for one in _tables(connection)}
            )

    def is_empty(self) -> bool:
        with self._connect() as connection:
            return not _tables(connection)

    def _drop_kept(self, connection: Connection) -> None:
        connection.execute(f"DROP SCHEMA IF EXISTS {KEPT} CASCADE")
        self._kept = None

    def _connect(self) -> Connection:
        return psycopg.connect(self.url, autocommit=True, row_factory=scalar_row)


def _tables(connection: Connection) -> list[str]:
    return connection.execute(TABLES).fetchall()


def _rows(connection: Connection, table: str) -> list[str]:
    name = Identifier(table)
    return connection.execute(SQL("SELECT t::text FROM {} AS t").format(name)).fetchall()


def _is_as_made(connection: Connection, made: Made) -> bool:
    shape = connection.execute(SHAPE).fetchone()
    size = connection.execute(BYTES).fetchone()
    return shape == made.shape and size < MAX_BYTES


def _restore_rows(connection: Connection, made: Made) -> None:
    """All rows as migrations left them, in one round trip; foreign keys do not matter meanwhile."""
    statements = [SQL("SET LOCAL session_replication_role = replica")]
    for table, rows in made.rows.items():
        name = Identifier(table)
        statements.append(SQL("DELETE FROM {}").format(name))
        statements += [
            SQL("INSERT INTO {} SELECT ({}::{}).*").format(name, Literal(row), name) for row in rows
        ]
    statements.append(SQL(RESTART))
    with connection.transaction():
        connection.execute(SQL("; ").join(statements))


class PreparedTables:
    """Stands in for the upgrade at start."""

    def __init__(self) -> None:
        self._upgrade = upgrades.upgrade_at_start
        self._migrate = upgrades._run
        self._files: dict[Key, bytes] = {}
        self.room: Room | None = None

    async def upgrade_at_start(self, database: Database, packs: Sequence[Schema] = ()) -> None:
        """As the original, whose tables the next empty database gets at once."""
        key = tuple(f"{one.version_table} {one.newest}" for one in (GATE, *packs))
        if upgrades._run is not self._migrate:  # a test that wants the migrations themselves
            await self._upgrade(database, packs)
        elif database.dialect == "sqlite":
            await self._of_file(database, packs, key)
        else:
            await self._of_room(database, packs, key)

    async def _of_file(self, database: Database, packs: Sequence[Schema], key: Key) -> None:
        file = embedded_file(database)
        if file is None or file.stat().st_size:
            await self._upgrade(database, packs)
        elif prepared := self._files.get(key):
            file.write_bytes(prepared)
        else:
            await self._upgrade(database, packs)
            connection = sqlite3.connect(file)
            self._files[key] = connection.serialize()
            connection.close()

    async def _of_room(self, database: Database, packs: Sequence[Schema], key: Key) -> None:
        room = self.room
        here = (
            room and room.keeping and database.url.render_as_string(hide_password=False) == room.url
        )
        if not room or not here or not room.is_empty():
            await self._upgrade(database, packs)
        elif not room.bring_back(key):
            await self._upgrade(database, packs)
            room.note(key)
