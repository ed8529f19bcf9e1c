"""From an empty database to the newest schema, by anybody at any time."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect, text
from tests.databases import STARTS_A_SERVER
from tests.patience import PATIENT
from tests.statements import noted_statements

from toolgate import packs
from toolgate.db import upgrades
from toolgate.db.connections import BUSY_MILLISECONDS, READER_BUSY_MILLISECONDS
from toolgate.db.engine import BadDatabaseUrl, Database
from toolgate.db.schemas import GATE
from toolgate.db.tables import metadata
from toolgate.db.upgrades import OtherSchema, current_revision, upgrade, upgrade_at_start

pytestmark = pytest.mark.anyio

ONLY_ON_POSTGRESQL = (
    "ix_content_entities_title_folded",
    "ix_content_entities_slug_folded",
    "ix_content_search_performance_query_folded",
    "ix_content_search_performance_page_url_folded",
    "ix_content_quotable_blocks_topic_tag_folded",
)
ONLY_ON_SQLITE = "_fts"


def ours(thing: Any, name: str | None, kind: str, *_: Any) -> bool:
    """Everything but the indexes that only one of the databases has."""
    if kind == "table":
        return ONLY_ON_SQLITE not in str(name)
    return not (kind == "index" and name in ONLY_ON_POSTGRESQL)


def differences(connection: Connection) -> list[Any]:
    options = {"compare_type": True, "include_object": ours}
    context = MigrationContext.configure(connection, opts=options)
    return compare_metadata(context, metadata)


async def test_an_upgrade_of_an_empty_database_makes_the_defined_tables(database_url: str) -> None:
    database = Database(database_url)
    assert await current_revision(database) is None
    await upgrade_at_start(database)
    assert await current_revision(database) == GATE.newest
    assert await database.read(differences) == []
    tables = await database.read(lambda c: inspect(c).get_table_names())
    named = {name for name in tables if ONLY_ON_SQLITE not in name}
    assert named == {*metadata.tables, "alembic_version"}
    await database.close()


async def test_a_difference_would_be_noticed(database_url: str) -> None:
    database = Database(database_url)
    await upgrade(database)
    await database.write(lambda c: c.execute(text("ALTER TABLE keys ADD COLUMN further TEXT")))
    await database.write(lambda c: c.execute(text("DROP INDEX ix_audit_seal_seq")))
    found = await database.read(differences)
    assert {one[0] for one in found} == {"remove_column", "add_index"}
    await database.close()


async def test_an_upgrade_of_the_newest_schema_changes_nothing(database_url: str) -> None:
    database = Database(database_url)
    await upgrade(database)
    with noted_statements() as statements:
        await upgrade(database)
        await upgrade_at_start(database)
    changing = ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE", "DELETE")
    assert statements
    assert [one for one in statements if one.lstrip().startswith(changing)] == []
    await database.close()


async def test_a_schema_from_the_future_is_not_touched(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    await upgrade(database)
    await database.write(
        lambda c: c.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    )
    with pytest.raises(OtherSchema, match="schema 9999, newer than this version knows"):
        await upgrade_at_start(database)
    await database.close()


async def test_of_a_pack_it_is_said_whose_schema_it_is(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'new.db'}")
    pack = packs.offers(["content"])[0].schema
    assert pack is not None
    await upgrade(database, [pack])
    await database.write(
        lambda c: c.execute(text("UPDATE content_version SET version_num = '9999'"))
    )
    with pytest.raises(OtherSchema, match="schema 9999 of pack 'content', newer than this"):
        await upgrade_at_start(database, [pack])
    await database.close()


@STARTS_A_SERVER
async def test_an_old_schema_on_postgresql_is_not_touched_unasked(postgres_database: str) -> None:
    database = Database(postgres_database)
    await upgrade(database)
    await database.write(lambda c: c.execute(text("UPDATE alembic_version SET version_num = '0'")))
    told = r"has schema 0, this version needs .*`toolgate db upgrade`"
    with pytest.raises(OtherSchema, match=told):
        await upgrade_at_start(database)
    assert await current_revision(database) == "0"
    await database.close()


async def test_everybody_may_upgrade_an_empty_database_at_once(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(4)]
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as starts:
            for one in databases:
                starts.start_soon(upgrade_at_start, one)
    assert await databases[0].read(differences) == []
    versions = text("SELECT version_num FROM alembic_version")
    assert await databases[0].read(lambda c: list(c.scalars(versions))) == [GATE.newest]
    for one in databases:
        await one.close()


START = """
import sys, anyio
from toolgate.db.engine import Database
from toolgate.db.upgrades import current_revision, upgrade_at_start

async def start() -> None:
    database = Database(sys.argv[1])
    print("ready", flush=True)
    sys.stdin.readline()
    await upgrade_at_start(database)
    print(await current_revision(database))

anyio.run(start)
"""


async def test_processes_may_upgrade_an_empty_database_at_once(database_url: str) -> None:
    assert upgraded_by_processes(database_url, 3) == [(GATE.newest, "")] * 3
    database = Database(database_url)
    assert await database.read(differences) == []
    await database.close()


def upgraded_by_processes(database_url: str, many: int) -> list[tuple[str, str]]:
    """What each said, on standard output and standard error, after all began at once."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", START, database_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(many)
    ]
    for one in processes:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    return [said(one) for one in start_all(processes)]


def start_all(processes: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    for one in processes:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    return processes


def said(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, errors = process.communicate(timeout=PATIENT)
    return out.strip(), errors


@pytest.mark.parametrize("way", ["read", "glance", "write"])
async def test_an_embedded_database_is_opened_safely_on_every_way_in(
    tmp_path: Path, way: str
) -> None:
    database = Database(f"sqlite:///{tmp_path / 'toolgate.db'}")

    def ask(connection: Connection) -> list[Any]:
        names = ("journal_mode", "foreign_keys", "busy_timeout")
        return [connection.scalar(text(f"PRAGMA {name}")) for name in names]

    match way:
        case "read":
            told = await database.read(ask)
        case "glance":
            told = await database.read(ask, quick=True)
        case _:
            told = await database.write(ask)
    busy = BUSY_MILLISECONDS if way == "write" else READER_BUSY_MILLISECONDS
    assert told == ["wal", 1, busy]
    await database.close()


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "oracle://x", "", "postgresql://:x:/"])
def test_an_address_of_no_database_we_know_is_refused_in_words(url: str) -> None:
    with pytest.raises(BadDatabaseUrl, match=r"Setting database\.url"):
        Database(url)


@pytest.mark.parametrize(
    "url", ["sqlite:///x.db", "postgresql://u:p@h/d", "postgresql+psycopg://h/d"]
)
def test_an_address_is_opened_with_the_driver_we_ship(url: str) -> None:
    assert Database(url).url.drivername in {"sqlite+pysqlite", "postgresql+psycopg"}


@pytest.mark.parametrize("earlier", GATE.revisions[:-1])
async def test_an_upgrade_from_every_earlier_schema_makes_the_same_tables(
    database_url: str, earlier: str
) -> None:
    def to_earlier(connection: Connection) -> None:
        command.upgrade(upgrades._config(connection, GATE), earlier)

    database = Database(database_url)
    await database.write(to_earlier)
    assert await current_revision(database) == earlier
    await upgrade(database)
    assert await current_revision(database) == GATE.newest
    assert await database.read(differences) == []
    await database.close()
