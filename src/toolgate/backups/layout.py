"""Which tables a backup has, found in the database itself: also those of packs switched off."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Boolean, Connection, Float, Inspector, Integer, LargeBinary, inspect, text
from sqlalchemy.types import JSON, String, TypeEngine

from toolgate.db.schemas import GATE

VERSIONS = "_version"
"""How the table ends that notes the revision of a pack's tables."""
DERIVED = frozenset(
    ["document_index", "document_index_state", "write_checks", "credential_changes"]
)
"""What is made anew from the rest, is always empty, or is of the moment."""
OF_PACKS = "_derived"
"""How the name of a pack's table ends that is made anew, too."""
SEQUENCES = "SELECT name, seq FROM sqlite_sequence"


class Column(NamedTuple):
    """A column, and what it holds."""

    name: str
    kind: str
    """`text`, `integer`, `number`, `boolean`, `json`, `bytes`, or `other`: told as text."""


class Table(NamedTuple):
    """A table with rows to keep."""

    name: str
    columns: list[Column]

    @property
    def listed(self) -> str:
        """The names of its columns, for a statement."""
        return ", ".join(quoted(one.name) for one in self.columns)


class Layout(NamedTuple):
    """What a database holds."""

    revisions: dict[str, str]
    """By pack; the gate's under an empty name."""
    tables: list[Table]
    """Those that others refer to come first."""
    strangers: list[str]
    """Tables that are neither the gate's nor a pack's."""

    @property
    def packs(self) -> list[str]:
        """The packs that have tables."""
        return [name for name in self.revisions if name]


def layout_of(connection: Connection) -> Layout:
    """What this database holds."""
    database = inspect(connection)
    names = [name for name, _ in database.get_sorted_table_and_fkc_names() if name]
    names = [name for name in names if name not in _virtual(connection)]
    packs = [one.removesuffix(VERSIONS) for one in names if one.endswith(VERSIONS)]
    packs = [name for name in packs if f"{name}{VERSIONS}" != GATE.version_table]
    ours = {name for name in names if owner_of(name, packs) is not None}
    kept = [name for name in names if name in ours and not _is_left_out(name)]
    revisions = (
        {"": _revision(connection, GATE.version_table)} if GATE.version_table in ours else {}
    )
    revisions |= {name: _revision(connection, f"{name}{VERSIONS}") for name in packs}
    return Layout(
        {name: found for name, found in revisions.items() if found},
        [table_of(database, name) for name in kept],
        [name for name in names if name not in ours],
    )


def owner_of(table: str, packs: Iterable[str]) -> str | None:
    """The pack whose table it is; an empty name for the gate, None for a stranger's."""
    if table in GATE.tables.tables or table == GATE.version_table:
        return ""
    return next((name for name in packs if table.startswith(f"{name}_")), None)


def table_of(database: Inspector, name: str) -> Table:
    """A table with its columns."""
    columns = database.get_columns(name)
    return Table(name, [Column(one["name"], _kind(one["type"])) for one in columns])


def sequences_of(connection: Connection, tables: Sequence[Table]) -> dict[str, int]:
    """The last number that each table gave to a row, where the database remembers it."""
    if connection.dialect.name == "sqlite":
        if not inspect(connection).has_table("sqlite_sequence"):
            return {}
        names = {one.name for one in tables}
        rows = connection.execute(text(SEQUENCES)).all()
        return {name: seq for name, seq in rows if name in names}
    found: dict[str, int] = {}
    for table in tables:
        for sequence in sequence_names(connection, table).values():
            asked = text(f"SELECT last_value, is_called FROM {sequence}")  # noqa: S608 (the server's own name)
            last, called = connection.execute(asked).one()
            found[table.name] = last if called else 0
    return found


def sequence_names(connection: Connection, table: Table) -> dict[str, str]:
    """PostgreSQL's sequences of a table, by column."""
    asked = text("SELECT pg_get_serial_sequence(:table, :column)")
    numbers = [one.name for one in table.columns if one.kind == "integer"]
    named = {
        column: connection.scalar(asked, {"table": quoted(table.name), "column": column})
        for column in numbers
    }
    return {column: name for column, name in named.items() if name}


def quoted(name: str) -> str:
    """A name as both databases take it in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _virtual(connection: Connection) -> set[str]:
    """SQLite's virtual tables, with the tables that they keep their content in."""
    if connection.dialect.name != "sqlite":
        return set()
    rows = connection.execute(text("SELECT name, type FROM pragma_table_list")).all()
    return {name for name, type_ in rows if type_ in {"virtual", "shadow"}}


def _is_left_out(name: str) -> bool:
    return name in DERIVED or name.endswith((VERSIONS, OF_PACKS)) or name == GATE.version_table


def _revision(connection: Connection, table: str) -> str:
    asked = text(f"SELECT version_num FROM {quoted(table)}")  # noqa: S608 (a table's own name)
    return connection.scalar(asked) or ""


def _kind(type_: TypeEngine[object]) -> str:
    kinds = {
        "json": JSON,
        "boolean": Boolean,
        "integer": Integer,
        "number": Float,
        "bytes": LargeBinary,
        "text": String,
    }
    return next((name for name, kind in kinds.items() if isinstance(type_, kind)), "other")
