"""MCP Toolbox for Databases, on databases like those of toolgate: one row read, one inserted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import URL, create_engine, make_url

from bench import installing, servers
from bench.servers import Server
from toolgate.db.tables import documents

SQLITE = """
    kind: sqlite
    database: {database}
"""
POSTGRES = """
    kind: postgres
    host: localhost
    port: "5432"
    database: {database}
    user: {user}
    password: not asked for
    queryParams: {{host: "{socket}"}}
"""
TOOLS = """
sources:
  documents:{source}
tools:
  get_document:
    kind: {kind}
    source: documents
    description: Get a document.
    parameters:
      - {{name: collection, type: string, description: Its collection.}}
      - {{name: document_id, type: string, description: Its id.}}
    statement: >-
      SELECT fields FROM documents
      WHERE namespace = 'appdata' AND collection = {first} AND id = {second}
  create_document:
    kind: {kind}
    source: documents
    description: Create a document.
    parameters:
      - {{name: collection, type: string, description: Its collection.}}
      - {{name: document_id, type: string, description: Its id.}}
      - {{name: data, type: string, description: Its fields as JSON.}}
    statement: >-
      INSERT INTO documents (namespace, collection, id, fields)
      VALUES ('appdata', {first}, {second}, {third})
"""


@contextmanager
def toolbox(url: str, file: Path, beside: list[int]) -> Iterator[Server]:
    """A server on this database, its settings in a file; beside it, a database server."""
    place = make_url(url)
    file.write_text(_sqlite(place) if place.get_backend_name() == "sqlite" else _postgres(place))
    port = servers.free_port()
    command = [installing.toolbox(), "--config", str(file), "--port", str(port)]
    command += ["--log-level", "ERROR", "--disable-reload", "--disable-version-check"]
    with servers.plain(command, port) as server:
        yield replace(server, beside=beside)


def _sqlite(place: URL) -> str:
    source = SQLITE.format(database=place.database)
    return TOOLS.format(source=source, kind="sqlite-sql", first="?", second="?", third="?")


def _postgres(place: URL) -> str:
    """By the socket that toolgate uses."""
    source = POSTGRES.format(
        database=place.database, user=place.username, socket=place.query["host"]
    )
    return TOOLS.format(source=source, kind="postgres-sql", first="$1", second="$2", third="$3")


def make_table(url: str) -> None:
    """The table of documents by itself, with its columns and constraints, for inserts."""
    place = make_url(url)
    sqlite = place.get_backend_name() == "sqlite"
    engine = create_engine(place if sqlite else place.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        documents.create(connection)
    if sqlite:
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")  # as toolgate's; it is kept
    engine.dispose()
