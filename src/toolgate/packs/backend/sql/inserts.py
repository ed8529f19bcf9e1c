"""Rows that may be there already."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Store a row unless there is one with its key; whether it was stored."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = dialect.insert(table).values(row).on_conflict_do_nothing()
    counted = connection.execute(new, execution_options={"preserve_rowcount": True})
    return counted.rowcount == 1
