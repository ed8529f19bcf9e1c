"""Content that was stored before its rows had numbers keeps all it had."""

from collections import Counter
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, select, text
from tests.databases import upgrade_all

from toolgate.db import upgrades
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE
from toolgate.packs.content import OFFER, demo
from toolgate.packs.content.sql import tables
from toolgate.packs.content.sql.upserts import store

pytestmark = pytest.mark.anyio

OLD = "0002"
LOADED = [
    (tables.projects, demo.PROJECTS),
    (tables.entities, demo.ENTITIES),
    (tables.relations, demo.RELATIONS),
    (tables.performance, demo.PERFORMANCE),
    (tables.blocks, demo.BLOCKS),
]


CONTENT = OFFER.schema
assert CONTENT is not None
ONE_HISTORY = ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"]
"""The revisions of the time when the gate's tables and these had one history."""


def to_old_schema(connection: Connection, revision: str = OLD) -> None:
    """The tables as they were at a revision of the one history."""
    for schema in (GATE, CONTENT):
        assert schema is not None
        if reached := [one for one in schema.revisions if one <= revision]:
            command.upgrade(upgrades._config(connection, schema), reached[-1])
    connection.execute(text("DROP TABLE IF EXISTS content_version"))
    connection.execute(text(f"UPDATE alembic_version SET version_num = '{revision}'"))


@pytest.mark.parametrize("revision", ONE_HISTORY)
async def test_a_database_with_one_history_gets_one_for_each(
    database_url: str, revision: str
) -> None:
    database = Database(database_url)
    await database.write(lambda connection: to_old_schema(connection, revision))
    await upgrade_all(database)
    for schema in (GATE, CONTENT):
        assert schema is not None
        assert await upgrades.current_revision(database, schema) == schema.newest
    await database.close()


def rows(connection: Connection) -> list[Any]:
    return [
        connection.execute(
            select(*(column for column in table.c if column.name != "number")).order_by(table.c.id)
        ).all()
        for table, _ in LOADED
    ]


async def test_an_upgrade_keeps_every_row_counts_it_and_finds_it(database_url: str) -> None:
    database = Database(database_url)
    await database.write(to_old_schema)

    def load(connection: Connection) -> None:
        for table, given in LOADED:
            store(connection, table, given)

    await database.write(load)
    before = await database.read(rows)
    await upgrade_all(database)
    assert await database.read(rows) == before
    assert await totals_are_right(database)
    await database.close()


DATED = {
    tables.entities: "created_at",
    tables.performance: "date_start",
    tables.blocks: "created_at",
}


async def totals_are_right(database: Database) -> bool:
    def look(connection: Connection) -> bool:
        kept = {
            (one.project_id, one.list, one.day): one.total
            for one in connection.execute(select(tables.totals))
            if one.total
        }
        real: Counter[tuple[str, str, str]] = Counter()
        for table, dated in DATED.items():
            for project, moment in connection.execute(select(table.c.project_id, table.c[dated])):
                real[project, table.name, moment[:10]] += 1
        return bool(kept) and kept == real

    return await database.read(look)


async def test_totals_follow_every_way_rows_come_and_go(database_url: str) -> None:
    database = Database(database_url)
    await upgrade_all(database)

    async def after(statement: Any) -> bool:
        await database.write(lambda c: c.execute(statement))
        return await totals_are_right(database)

    for table, given in LOADED:
        await database.write(lambda c, table=table, given=given: store(c, table, given))
        await database.write(lambda c, table=table, given=given: store(c, table, given[:1]))
        assert table is tables.projects or await totals_are_right(database)
    block = demo.BLOCKS[0]["id"]
    assert await after(text(f"DELETE FROM content_quotable_blocks WHERE id = '{block}'"))
    earlier = "UPDATE content_entities SET created_at = '2001-01-01T00:00:00.000Z'"
    assert await after(text(earlier))
    moved = {"project": demo.GARDEN, "entity": demo.COMPOST}
    assert await after(
        text(
            "UPDATE content_quotable_blocks SET project_id = :project, entity_id = :entity"
        ).bindparams(**moved)
    )
    async with database.transaction() as tx:
        await tx.run(lambda c: c.execute(text("DELETE FROM content_quotable_blocks")))
        tx.abandon()
    assert await totals_are_right(database)
    if database.dialect == "postgresql":
        assert await after(text("TRUNCATE content_quotable_blocks"))
    else:
        assert await after(text("DELETE FROM content_quotable_blocks"))
    await database.close()
