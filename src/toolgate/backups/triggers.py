"""Triggers rest while rows are stored that they have already worked on."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, inspect, text

from toolgate.backups.layout import quoted

TRIGGERS = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
SEARCHED = text("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%USING fts5%'")


@contextmanager
def triggers_off(connection: Connection, tables: Sequence[str]) -> Generator[None]:
    """No trigger of these tables runs within; where it raises, the transaction is at its end.

    What full-text indexes of SQLite hold is made anew: triggers fill them.
    """
    if connection.dialect.name == "sqlite":
        triggers = connection.execute(TRIGGERS).all()
        for name, _ in triggers:
            connection.exec_driver_sql(f"DROP TRIGGER {quoted(name)}")
        yield
        for _, definition in triggers:
            connection.exec_driver_sql(definition)
        for name in connection.scalars(SEARCHED).all():
            index = quoted(name)
            rebuild = f"INSERT INTO {index}({index}) VALUES ('rebuild')"  # noqa: S608 (its own name)
            connection.exec_driver_sql(rebuild)
        return
    there = [name for name in tables if inspect(connection).has_table(name)]
    for name in there:
        connection.exec_driver_sql(f"ALTER TABLE {quoted(name)} DISABLE TRIGGER USER")
    yield
    for name in there:
        connection.exec_driver_sql(f"ALTER TABLE {quoted(name)} ENABLE TRIGGER USER")
