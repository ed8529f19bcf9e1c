"""Substring search answers the same with its indexes, without them, and after a clean-up."""

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, make_url, select, text
from tests.databases import STARTS_A_SERVER, Migrate

from toolgate.db import upgrades
from toolgate.packs.content import demo
from toolgate.packs.content.demo import GARDEN, PSYMETRIC
from toolgate.packs.content.sql.lists import ENTITIES
from toolgate.packs.content.sql.search import contains, of_project, search
from toolgate.packs.content.sql.tables import entities, performance, projects
from toolgate.packs.content.sql.upserts import store
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

NEW = "00000000-0000-4000-a000-0f{:010}"


async def found(kit: Kit, wanted: str, project: str = PSYMETRIC) -> list[str]:
    outcome = await kit.call("search_entities", projectId=project, search=wanted, limit=100)
    return [row["slug"] for row in outcome.body["data"]]


async def add_titles(kit: Kit, project: str, *titles: str) -> None:
    made = [
        {**demo.ENTITIES[5], "id": NEW.format(number), "slug": f"t{number}", "title": title}
        | {"project_id": project}
        for number, title in enumerate(titles)
    ]
    await kit.app.gate.database.write(lambda connection: store(connection, entities, made))


async def plan(kit: Kit, wanted: str) -> str:
    """How PostgreSQL finds a text."""
    listing = ENTITIES
    asked = search("postgresql", listing, PSYMETRIC, {"search": wanted})
    found = contains("postgresql", listing, "search")
    own = of_project("postgresql", listing, indexed=asked.indexed)
    chosen = select(entities.c.id).where(own, found)
    values = {"project": PSYMETRIC, **(asked.values or {})}

    def look(connection: Connection) -> str:
        written = chosen.compile(dialect=connection.dialect)
        told = connection.exec_driver_sql(f"EXPLAIN {written}", written.construct_params(values))
        return "\n".join(row[0] for row in told)

    return await kit.app.gate.database.read(look)


async def test_a_vacuum_does_not_mix_the_index_up(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        await add_titles(kit, PSYMETRIC, "first zebra", "second", "third zebra")
        database = kit.app.gate.database

        def remove(connection: Connection) -> None:
            connection.execute(text("DELETE FROM content_entities WHERE slug = 't0'"))

        await database.write(remove)
    with sqlite3.connect(tmp_path / "toolgate.db", isolation_level=None) as direct:
        direct.execute("VACUUM")
    async with opened_kit(tmp_path) as kit:
        assert await found(kit, "ZEBRA") == ["t2"]
        assert await found(kit, "second") == ["t1"]


async def test_a_text_that_other_projects_are_full_of_is_still_found(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        await add_titles(kit, GARDEN, *(f"zebra {number}" for number in range(100)))
        assert await found(kit, "zebra") == []
        assert len(await found(kit, "zebra", GARDEN)) == 100
        assert await found(kit, "zebra 42", GARDEN) == ["t42"]


async def test_projects_whose_ids_end_alike_are_kept_apart(
    database_url: str, tmp_path: Path
) -> None:
    """SQLite's index knows no more of a project than the end of its id."""
    alike = ["00000000-0000-4000-8000-000000000abc", "00000000-0000-4000-8000-000000001abc"]
    async with opened_kit(tmp_path, database__url=database_url) as kit:
        made = [
            {**demo.PROJECTS[0], "id": id, "slug": f"p{number}"} for number, id in enumerate(alike)
        ]
        await kit.app.gate.database.write(lambda connection: store(connection, projects, made))
        await add_titles(kit, alike[0], "a zebra", "a horse")
        assert await found(kit, "zebra", alike[0]) == ["t0"]
        assert await found(kit, "zebra", alike[1]) == []


@pytest.mark.parametrize("wanted", ["zebra cro", "bracross", "zebra  crossing", "zebras"])
async def test_trigrams_alone_find_nothing(database_url: str, tmp_path: Path, wanted: str) -> None:
    """All trigrams of the text are in the row, the text is not."""
    async with opened_kit(tmp_path, demo_data=True, database__url=database_url) as kit:
        await add_titles(
            kit, PSYMETRIC, "crossing a zebra", "cro ra c zeb bra oss ss i", "zebrasas"
        )
        assert set(await found(kit, wanted)) == ({"t2"} if wanted == "zebras" else set())


async def test_two_texts_of_one_row_are_both_asked_for(database_url: str, tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True, database__url=database_url) as kit:
        pairs = [("zebra", "horse"), ("zebra", "camel"), ("lion", "horse"), ("ze", "horse")]
        made: list[dict[str, Any]] = [
            {**demo.PERFORMANCE[0], "id": NEW.format(number), "query": query}
            | {"page_url": f"https://x.example/{page}/{number}"}
            for number, (query, page) in enumerate(pairs)
        ]
        await kit.app.gate.database.write(lambda c: store(c, performance, made))

        async def asked(**texts: str) -> list[str]:
            given = {"projectId": PSYMETRIC, **texts}
            body = (await kit.send("list_search_performance", given)).body
            return sorted(row["pageUrl"][-1] for row in body["data"])

        assert await asked(query="ZEBRA", pageUrl="/horse") == ["0"]
        assert await asked(query="ze", pageUrl="/Horse") == ["0", "3"]
        assert await asked(query="zebra", pageUrl="/h") == ["0"]


@STARTS_A_SERVER
async def test_without_the_extension_searches_answer_the_same(
    postgres_database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    migrations_once: Migrate,
) -> None:
    """A database user that may not make extensions; the role is gone with its server."""
    # What is replayed elsewhere knows of no refusal.
    monkeypatch.setattr(upgrades, "_run", migrations_once)
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'plain'").fetchone()
        if not known:
            connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        connection.execute("GRANT ALL ON SCHEMA public TO plain")
    url = make_url(postgres_database).set(username="plain", password="plain")
    plain = url.render_as_string(hide_password=False)
    async with opened_kit(tmp_path, demo_data=True, database__url=plain) as kit:
        await add_titles(kit, PSYMETRIC, "a zebra", "no horse")
        assert await found(kit, "ZEB") == ["t0"]
        assert "_folded on" not in await plan(kit, "zeb")


@STARTS_A_SERVER
async def test_with_the_extension_the_index_is_used(postgres_database: str, tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True, database__url=postgres_database) as kit:
        await add_titles(kit, PSYMETRIC, "a zebra", *["no horse"] * 5000)
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE content_entities")
        assert await found(kit, "ZEB") == ["t0"]
        told = await plan(kit, "zeb")
        for column in ("title_folded", "slug_folded"):
            asked = told.partition(f"Bitmap Index Scan on ix_content_entities_{column}")[2]
            condition = asked.partition("Index Cond: ")[2].partition("\n")[0]
            assert "right" in condition, told
            assert column in condition, told
        assert "_folded on" not in await plan(kit, "ze")
