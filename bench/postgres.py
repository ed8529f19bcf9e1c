"""A PostgreSQL server of the benchmark's own, on the servers' core."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from sqlalchemy import make_url
from tests.databases import postgres_in, running_postgres

from bench import cpu
from bench.servers import CORES


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server."""

    uri: str
    pid: int

    def new_database(self, name: str) -> str:
        """The address of a new, empty database."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.address(name)

    def set_memory(self, size: str) -> None:
        """How much of the data the server keeps in memory, from its next start on."""
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET shared_buffers = '{size}'".encode())

    def address(self, name: str) -> str:
        return make_url(self.uri).set(database=name).render_as_string(hide_password=False)


@contextmanager
def postgres(folder: Path | None = None) -> Iterator[Postgres]:
    """Started now, ended at the end; data in a folder that is given are kept."""
    with postgres_in(folder) if folder else running_postgres() as server:
        for pid in cpu.tree([server.get_pid()]):
            os.sched_setaffinity(pid, CORES[:1])
        yield Postgres(server.get_uri(), server.get_pid())
