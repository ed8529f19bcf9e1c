"""One document by its id: on SQLite beside Toolbox with the same file, and on PostgreSQL."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from sqlalchemy import make_url
from tests.databases import running_postgres

from bench import cpu, installing, servers
from bench.data import FILE
from bench.messages import DOCUMENT, NEW, request
from bench.racing import Runner, race, tell
from bench.servers import CORES, Server, Settings
from bench.stage import Stage

SQLITE, POSTGRES = "toolgate, SQLite", "toolgate, PostgreSQL (its CPU counted)"
TOOLBOX = "Toolbox, SQLite"
TOOLS = """
sources:
  documents:
    kind: sqlite
    database: {file}
tools:
  get_document:
    kind: sqlite-sql
    source: documents
    description: Get a document.
    parameters:
      - {{name: collection, type: string, description: Its collection.}}
      - {{name: document_id, type: string, description: Its id.}}
    statement: SELECT fields FROM documents WHERE collection = ? AND id = ?
"""


def document(stage: Stage) -> None:
    """Read the same row, 16 connections, everyone on one core."""
    with ExitStack() as stack:
        runners = [_runner(SQLITE, stage.ours)]
        if postgres := stage.peer("PostgreSQL", lambda: stack.enter_context(_postgres())):
            server = stack.enter_context(servers.toolgate(_on(postgres, stage)))
            runners.append(_runner(POSTGRES, server))
        if toolbox := stage.peer("Toolbox", lambda: stack.enter_context(_toolbox(stage))):
            runners.append(_runner(TOOLBOX, toolbox))
        tell("get_document")
        found = race(runners, stage.rounds)
    stage.book.note(f"get_document {NEW}", found)
    if TOOLBOX in found:
        ours, other = found[SQLITE], found[TOOLBOX]
        stage.book.cpu("get_document on SQLite: CPU / Toolbox's", ours, other, 1)
        stage.book.speed("get_document on SQLite: calls/s / Toolbox's", ours, other, 1)


def _runner(name: str, server: Server) -> Runner:
    asked = request("tools/call", DOCUMENT, NEW, key=server.key)
    return Runner(name=name, server=server, requests=[asked], marker=b"jane@example.com")


@contextmanager
def _postgres() -> Iterator[Any]:
    with running_postgres() as postgres:
        for pid in cpu.tree([postgres.get_pid()]):
            os.sched_setaffinity(pid, CORES[:1])
        yield postgres


def _on(postgres: Any, stage: Stage) -> Settings:
    with psycopg.connect(postgres.get_uri(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE bench")
    url = make_url(postgres.get_uri()).set(database="bench")
    return Settings(
        data=stage.folder / "postgres",
        tools=stage.tools,
        database_url=url.render_as_string(hide_password=False),
        beside=(postgres.get_pid(),),
    )


@contextmanager
def _toolbox(stage: Stage) -> Iterator[Server]:
    file = stage.folder / "toolbox.yaml"
    file.write_text(TOOLS.format(file=stage.data / FILE))
    port = servers.free_port()
    command = [installing.toolbox(), "--config", str(file), "--port", str(port)]
    command += ["--log-level", "ERROR", "--disable-reload", "--disable-version-check"]
    with servers.plain(command, port) as server:
        yield server
