"""What is in a database, read by nothing of ours: its driver alone."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
from sqlalchemy import make_url

Rows = list[tuple[Any, ...]]
SHADOWS = "SELECT name FROM pragma_table_list WHERE type IN ('table') AND schema = 'main'"
OF_SERVER = {"changes": {"transaction_id"}}
"""Columns whose values belong to one PostgreSQL server."""


def content_of(url: str) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, in one order; JSON as what it says.

    But for what is of the moment: which credentials have just changed.
    """
    found = _of_sqlite(url) if url.startswith("sqlite") else _of_postgres(url)
    found.pop("credential_changes")
    return {
        table: sorted((_plain(table, row) for row in rows), key=repr)
        for table, rows in found.items()
    }


def indexes_of(url: str) -> set[str]:
    """The names of all indexes."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(make_url(url).database or "")) as connection:
            asked = "SELECT name FROM sqlite_master WHERE type = 'index'"
            return {name for (name,) in connection.execute(asked)}
    with psycopg.connect(url) as connection:
        asked = "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
        return {name for (name,) in connection.execute(asked)}


def without_own_rows(content: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The same without what a restore itself adds: its audit row, and that schedules rest.

    And without what is counted from other tables, whenever somebody asks.
    """
    rows = [row for row in content["audit"] if row["tool_name"] != "restore"]
    schedules = [row for row in content["workflow_schedules"] if row["workflow"] != "*"]
    kept = {name: rows for name, rows in content.items() if not name.endswith("_derived")}
    return kept | {"audit": rows, "workflow_schedules": schedules}


def _of_sqlite(url: str) -> dict[str, list[dict[str, Any]]]:
    with closing(sqlite3.connect(make_url(url).database or "")) as connection:
        names = [name for (name,) in connection.execute(SHADOWS) if not name.startswith("sqlite_")]
        found: dict[str, list[dict[str, Any]]] = {}
        for name in names:
            about = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
            kinds = {column[1]: column[2] for column in about}
            rows = connection.execute(f'SELECT {", ".join(map(_q, kinds))} FROM "{name}"')
            found[name] = [
                {
                    column: _json(value) if kinds[column] == "JSON" else value
                    for column, value in zip(kinds, row, strict=True)
                }
                for row in rows
            ]
        return found


def _of_postgres(url: str) -> dict[str, list[dict[str, Any]]]:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        asked = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        names = [row["tablename"] for row in connection.execute(asked)]
        return {
            name: connection.execute(f'SELECT * FROM "{name}"').fetchall()  # pyright: ignore
            for name in names
        }


def _q(name: str) -> str:
    return f'"{name}"'


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _plain(table: str, row: dict[str, Any]) -> dict[str, Any]:
    left_out = OF_SERVER.get(table, set())
    plain = {name: _value(value) for name, value in row.items() if name not in left_out}
    return dict(sorted(plain.items()))


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value
