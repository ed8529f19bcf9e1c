"""Tables that are kept from one test to the next carry nothing over."""

from pathlib import Path

import psycopg
import pytest
from tests.databases import STARTS_A_SERVER
from tests.prepared_tables import Room

from toolgate.testing import opened_kit

pytestmark = [STARTS_A_SERVER, pytest.mark.anyio]
CHANGES = [
    "ALTER TABLE audit ADD COLUMN more text",
    "ALTER TABLE audit ALTER COLUMN transport DROP NOT NULL",
    "DROP INDEX {index}",
    "CREATE TABLE another (id int)",
    "GRANT SELECT ON documents TO PUBLIC",
]


def shape(room: Room) -> list[tuple[str, ...]]:
    """Tables, columns, indexes and privileges, as the catalogues show them."""
    with psycopg.connect(room.url) as connection:
        return connection.execute(
            "SELECT 'column', table_name, column_name, is_nullable FROM information_schema.columns"
            " WHERE table_schema = 'public' UNION ALL"
            " SELECT 'index', tablename, indexname, '' FROM pg_indexes"
            " WHERE schemaname = 'public' UNION ALL"
            " SELECT 'grant', table_name, grantee, privilege_type"
            " FROM information_schema.role_table_grants WHERE table_schema = 'public'"
            " ORDER BY 1, 2, 3, 4"
        ).fetchall()


async def test_rows_and_counters_are_gone(room: Room, tmp_path: Path) -> None:
    room.empty(keeping=True)
    first, second = [], []
    for rows in (first, second):
        assert room.is_empty()
        async with opened_kit(tmp_path, writes=True, database__url=room.url) as kit:
            found = await kit.call("query_collection", collection="users")
            rows += [found.body["count"]]
            data = {"email": "a@example.com"}
            await kit.call("create_document", collection="users", document_id="new", data=data)
            rows += [row["seq"] for row in await kit.audit_rows()]
        room.empty(keeping=True)
    assert first == second


@pytest.mark.parametrize("change", CHANGES)
async def test_tables_that_a_test_changed_are_made_anew(
    room: Room, tmp_path: Path, change: str
) -> None:
    room.empty(keeping=True)
    async with opened_kit(tmp_path, database__url=room.url):
        made = shape(room)
    with psycopg.connect(room.url, autocommit=True) as connection:
        index = next(
            name
            for kind, table, name, _ in made
            if (kind, table) == ("index", "audit") and "pk" not in name
        )
        connection.execute(change.format(index=index))
    assert shape(room) != made
    room.empty(keeping=True)
    async with opened_kit(tmp_path, database__url=room.url):
        assert shape(room) == made
