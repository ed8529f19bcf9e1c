"""The tables of a database that a backup is read into: whether they are empty, and their end."""

from collections.abc import Sequence

from sqlalchemy import Connection, inspect, text

from toolgate.backups.layout import DERIVED, VERSIONS, owner_of, quoted
from toolgate.db.schemas import GATE

MADE_BY_MIGRATIONS = DERIVED | {"audit_head", "sqlite_sequence"}
"""Tables with a row from the start."""
FUNCTIONS = text(
    "SELECT CAST(oid AS regprocedure) FROM pg_proc WHERE pronamespace = "
    "CAST(current_schema() AS regnamespace) AND proname LIKE :prefix"
)


def filled_table(connection: Connection, packs: Sequence[str]) -> str | None:
    """A table of toolgate's that has rows; None in an empty database."""
    for name in reversed(_tables(connection, packs)):
        noted = name.endswith(VERSIONS) or name in MADE_BY_MIGRATIONS
        asked = text(f"SELECT 1 FROM {quoted(name)} LIMIT 1")  # noqa: S608 (a table's own name)
        if not noted and connection.scalar(asked) is not None:
            return name
    return None


def drop_tables(connection: Connection, packs: Sequence[str]) -> None:
    """Drop every table of toolgate's, with what its migrations made beside; no other's."""
    if connection.dialect.name == "sqlite":
        _drop_virtual(connection, packs)
    for name in _tables(connection, packs):
        end = "" if connection.dialect.name == "sqlite" else " CASCADE"
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {quoted(name)}{end}")
    if connection.dialect.name == "postgresql":
        for pack in packs:
            prefix = pack.replace("_", r"\_") + r"\_%"
            for function in connection.scalars(FUNCTIONS, {"prefix": prefix}).all():
                connection.exec_driver_sql(f"DROP FUNCTION {function}")


def _tables(connection: Connection, packs: Sequence[str]) -> list[str]:
    """Those that refer to others come first."""
    database = inspect(connection)
    names = [name for name, _ in database.get_sorted_table_and_fkc_names() if name]
    ours = [one for one in names if owner_of(one, packs) is not None or one == GATE.version_table]
    return ours[::-1]


def _drop_virtual(connection: Connection, packs: Sequence[str]) -> None:
    """SQLite's virtual tables, and the views that they read."""
    asked = text(
        "SELECT name, type FROM sqlite_master WHERE type = 'view' OR sql LIKE 'CREATE VIRTUAL%'"
    )
    for name, type_ in connection.execute(asked).all():
        if owner_of(name, packs) is not None:
            what = "VIEW" if type_ == "view" else "TABLE"
            connection.exec_driver_sql(f"DROP {what} {quoted(name)}")
