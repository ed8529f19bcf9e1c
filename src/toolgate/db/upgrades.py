"""Bringing the database to the newest schema: the gate's tables, then those of each pack.

Each has a history of its own, so that a pack can be switched off, or be another package's.
"""

import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from toolgate.db.engine import Database
from toolgate.db.outages import describe, is_outage
from toolgate.db.schemas import GATE, Schema

if TYPE_CHECKING:
    from alembic.config import Config

LOCK = 0x7001_6A7F


class OtherSchema(RuntimeError):
    """The database has another schema than this version needs, and is left as it is."""


async def current_revision(database: Database, schema: Schema = GATE) -> str | None:
    """The revision of these tables in the database; None where they are not there."""
    return await database.read(lambda connection: _revision(connection, schema))


async def pending_upgrades(
    database: Database, packs: Iterable[Schema] = ()
) -> list[tuple[Schema, str | None]]:
    """What the database has, wherever this version needs another revision."""
    every = (GATE, *packs)
    revisions = await database.read(
        lambda connection: [_revision(connection, one) for one in every]
    )
    pairs = zip(revisions, every, strict=True)
    return [(schema, has) for has, schema in pairs if has != schema.newest]


async def missing_parts(database: Database, schemas: Iterable[Schema]) -> list[str]:
    """Tables and columns that schemas define and the database lacks, in words."""
    every = list(schemas)
    return await database.read(
        lambda connection: [part for one in every for part in _missing(connection, one)]
    )


def _missing(connection: Connection, schema: Schema) -> Iterator[str]:
    database = inspect(connection)
    there = set(database.get_table_names())
    whose = f" of pack {schema.pack!r}" if schema.pack else ""
    for table in schema.tables.sorted_tables:
        if table.name not in there:
            yield f"table {table.name}{whose}"
            continue
        columns = {one["name"] for one in database.get_columns(table.name)}
        yield from (
            f"column {table.name}.{one.name}{whose}"
            for one in table.columns
            if one.name not in columns
        )


async def upgrade_at_start(database: Database, packs: Sequence[Schema] = ()) -> None:
    """Upgrade an embedded or an empty database; refuse to touch another one unasked."""
    behind = await pending_upgrades(database, packs)
    if not behind:
        return
    schema, has = behind[0]
    older = has is None or has < schema.newest
    if older and database.dialect != "sqlite" and await current_revision(database) is not None:
        raise OtherSchema(
            f"The database has {schema.describe(has)}, this version needs {schema.newest}. "
            "Run `toolgate db upgrade`."
        )
    await upgrade(database, packs)


async def upgrade(database: Database, packs: Iterable[Schema] = ()) -> None:
    """Run every migration that is missing, in one transaction."""
    await database.write(lambda connection: _upgrade(connection, (GATE, *packs)))


def upgrade_within(connection: Connection, packs: Sequence[Schema]) -> None:
    """The same in a transaction that is open."""
    _upgrade(connection, (GATE, *packs))


def make_at(connection: Connection, schema: Schema, revision: str) -> None:
    """Make tables as they were at a revision, where there are none, in an open transaction."""
    if revision == schema.newest:
        _run(connection, schema)
        return
    from alembic import command  # noqa: PLC0415

    command.upgrade(_config(connection, schema), revision)


def _revision(connection: Connection, schema: Schema) -> str | None:
    if not inspect(connection).has_table(schema.version_table):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {schema.version_table}"))  # noqa: S608 (ours)


def _upgrade(connection: Connection, every: Sequence[Schema]) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    _split_history(connection, every)
    for schema in every:
        revision = _revision(connection, schema)
        if revision is not None and revision > schema.newest:
            raise OtherSchema(
                f"The database has {schema.describe(revision)}, newer than this version knows "
                f"({schema.newest}). Use the version that made it, or a newer one."
            )
        if revision != schema.newest:
            with _told(schema):
                _run(connection, schema)
            if missing := next(_missing(connection, schema), None):
                raise OtherSchema(
                    f"The migrations in {schema.migrations} do not make {missing}. Nothing was "
                    "changed: correct them, and upgrade again."
                )


def _split_history(connection: Connection, every: Sequence[Schema]) -> None:
    """Give each pack its own history, where a database still has one for all."""
    one_for_all = _revision(connection, GATE)
    if one_for_all is None:
        return
    for schema in every:
        has = [revision for revision in schema.shared if revision <= one_for_all]
        has_tables = has and inspect(connection).has_table(next(iter(schema.tables.tables)))
        if has_tables and _revision(connection, schema) is None:
            _stamp(connection, schema, has[-1])
    if one_for_all not in GATE.revisions and one_for_all < GATE.newest:
        _stamp(connection, GATE, max(one for one in GATE.revisions if one < one_for_all))


def _stamp(connection: Connection, schema: Schema, revision: str) -> None:
    """Note a revision without running anything."""
    from alembic import command  # noqa: PLC0415

    command.stamp(_config(connection, schema), revision, purge=True)


def _run(connection: Connection, schema: Schema) -> None:
    from alembic import command  # noqa: PLC0415

    command.upgrade(_config(connection, schema), "head")


@contextmanager
def _told(schema: Schema) -> Generator[None]:
    """Raise `OtherSchema` where a migration of a pack fails by itself, and say in which line."""
    try:
        yield
    except Exception as error:
        if schema.pack is None or isinstance(error, OtherSchema) or is_outage(error):
            raise
        what = f"{_place(schema, error)}{type(error).__name__}: {describe(error).rstrip('.')}"
        raise OtherSchema(
            f"A migration of pack {schema.pack!r} fails: {what}. Nothing was changed: correct it, "
            "and upgrade again."
        ) from error


def _place(schema: Schema, error: Exception) -> str:
    """The line of a migration that an error comes from, as `FILE:LINE: `."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: "
    folder = str(resources.files(schema.migrations))
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if one.filename.startswith(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def _config(connection: Connection, schema: Schema) -> "Config":
    # Imported here: a database that is up to date never needs Alembic.
    from alembic.config import Config  # noqa: PLC0415

    package, _, folder = schema.migrations.rpartition(".")
    config = Config()
    config.set_main_option("script_location", "toolgate.db:migrations")
    files = f"{package}:{folder}" if package else str(resources.files(folder))
    config.set_main_option("version_locations", files)
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    config.attributes["version_table"] = schema.version_table
    return config
