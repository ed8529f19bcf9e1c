"""Imports beside other writers, over what is stored already, and of one dimension alone."""

import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, update
from tests.packs.content.files import ENTITIES, FIGURES, ROWS, VIDEO, Place, opened

from toolgate.packs.content.importing import BadFile
from toolgate.packs.content.sql import tables

pytestmark = pytest.mark.anyio

PERIOD = {"start": "2025-06-01", "end": "2025-06-07"}
QUERIES = "Top queries,Clicks,Impressions,CTR,Position\nrag,1,2,50%,3\nvector,0,9,0%,8\n"
PAGES = "Top pages,Clicks,Impressions,CTR,Position\nhttps://x.example/a,1,2,50%,3\n"
NEWS = [{"entityType": "news", "title": "N", "slug": f"n-{number}"} for number in range(1500)]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async for one in opened(f"sqlite:///{tmp_path / 'toolgate.db'}", tmp_path):
        yield one


@pytest.fixture
async def either(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async for one in opened(database_url, tmp_path):
        yield one


def once(work: Callable[[], object]) -> Callable[[int], None]:
    """Does the work when the first bytes were read."""
    left = [work]

    def seen(_: int) -> None:
        if left:
            left.pop()()

    return seen


def written(place: Place, statement: Any) -> Callable[[], None]:
    """Another connection's write, which waits for nobody."""

    def write() -> None:
        name = place.database.url.database
        assert name
        other = sqlite3.connect(name, timeout=0)
        sql = str(statement.compile(compile_kwargs={"literal_binds": True}))
        other.execute(sql)
        other.commit()
        other.close()

    return write


@pytest.fixture
def between(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has work done when a file was checked, and before it is stored."""
    begin = place.database.transaction

    def done(work: Callable[[], object]) -> None:
        def transaction() -> Any:
            work()
            return begin()

        monkeypatch.setattr(place.database, "transaction", transaction)

    return done


def renamed(title: str) -> Any:
    return update(tables.projects).values(name=title)


async def test_others_write_while_a_file_is_checked(place: Place) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    report = await place.load(
        place.rows_file("n.jsonl", NEWS), once(written(place, renamed("Other")))
    )
    assert report.stored == len(NEWS)


async def test_both_passes_are_counted(place: Place) -> None:
    path = place.rows_file("n.jsonl", NEWS)
    counts: list[int] = []
    await place.load(path, counts.append, dry_run=True)
    assert sum(counts) == path.stat().st_size
    counts.clear()
    await place.load(path, counts.append)
    assert sum(counts) == 2 * path.stat().st_size


async def test_an_id_taken_meanwhile_takes_all_back(
    place: Place, between: Callable[..., None]
) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    before = await place.rows("entities")
    table = tables.entities
    taking = update(table).where(table.c.slug == "build").values(id=VIDEO)
    path = place.rows_file("n.jsonl", [*NEWS, NEWS[0] | {"slug": "last", "id": VIDEO}])
    between(written(place, taking))
    report = await place.load(path)
    told = f"id {VIDEO} is that of another row already"
    assert (report.stored, report.refused) == (0, [(1501, told)])
    assert len(await place.rows("entities")) == len(before)


async def test_an_entity_gone_meanwhile_is_told(place: Place, between: Callable[..., None]) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    gone = delete(tables.entities).where(tables.entities.c.slug == "rag")
    path = place.rows_file("b.jsonl", ROWS["blocks"])
    between(written(place, gone))
    report = await place.load(path)
    assert report.refused == [(1, "entityId names no entity of this project")]


async def test_a_project_made_anew_meanwhile(place: Place, between: Callable[..., None]) -> None:
    await place.load(place.rows_file("n.jsonl", NEWS[:1]), project="q")
    taking = update(tables.projects).values(slug="p")
    between(written(place, taking))
    with pytest.raises(BadFile, match="made anew meanwhile"):
        await place.load(place.rows_file("e.jsonl", ENTITIES))
    assert len(await place.rows("entities")) == 1


@pytest.mark.parametrize("change", ["size", "time", "gone"])
async def test_a_file_that_changes_meanwhile_is_refused(place: Place, change: str) -> None:
    path = place.rows_file("n.jsonl", NEWS)
    changes: dict[str, Callable[[], object]] = {
        "size": lambda: path.write_bytes(path.read_bytes() + b"\n"),
        "time": lambda: os.utime(path, (1, 1)),
        "gone": path.unlink,
    }
    with pytest.raises(BadFile, match=r"n\.jsonl changed while it was imported"):
        await place.load(path, once(changes[change]))
    assert await place.rows("entities") == []


WHOLE: dict[str, dict[str, Any]] = {
    "entities": ENTITIES[2]
    | {"summary": "S", "difficulty": "advanced", "status": "published"}
    | {"canonicalUrl": "https://x.example/kit", "lastVerifiedAt": "2025-06-01"},
    "relations": ROWS["relations"][1] | {"notes": "N"},
    "blocks": ROWS["blocks"][0] | {"sourceCitation": "C"},
    "performance": ROWS["performance"][0],
}
KEYS = {
    "entities": ("entityType", "title", "slug"),
    "relations": ("relationType", "from", "to"),
    "blocks": ("entityId", "text", "claimType"),
    "performance": tuple(WHOLE["performance"].keys() - {"entityId"}),
}
MOMENTS = {"created_at", "updated_at", "captured_at"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
async def test_fields_that_a_file_does_not_have_stay(either: Place, form: str) -> None:
    await either.load(either.rows_file("e.jsonl", ENTITIES))
    for kind, row in WHOLE.items():
        await either.load(either.rows_file(f"{kind}.{form}", [row]))
        [before] = [one for one in await either.rows(kind) if _is(one, row)]
        short = {name: row[name] for name in KEYS[kind]}
        report = await either.load(either.rows_file(f"{kind}.{form}", [short]))
        assert (report.stored, report.refused) == (1, [])
        [after] = [one for one in await either.rows(kind) if _is(one, row)]
        same = before.keys() - MOMENTS
        assert {name: after[name] for name in same} == {name: before[name] for name in same}
        if kind == "entities":
            assert after["updated_at"] > before["updated_at"]


def _is(stored: dict[str, Any], row: dict[str, Any]) -> bool:
    told = {"slug": "slug", "relation_type": "relationType", "text": "text", "query": "query"}
    return all(stored[own] == row[name] for own, name in told.items() if own in stored)


@pytest.mark.parametrize(("form", "nothing"), [("csv", ""), ("jsonl", None), ("jsonl", "")])
async def test_empty_fields_clear(place: Place, form: str, nothing: str | None) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    cleared = {
        "entities": {"summary": "summary", "difficulty": "difficulty"},
        "relations": {"notes": "notes"},
        "blocks": {"topicTag": "topic_tag", "verifiedUntil": "verified_until"},
        "performance": {"entityId": "entity_id"},
    }
    for kind, names in cleared.items():
        await place.load(place.rows_file(f"{kind}.{form}", [WHOLE[kind]]))
        empty = WHOLE[kind] | dict.fromkeys(names, nothing)
        await place.load(place.rows_file(f"{kind}.{form}", [empty]))
        [after] = [one for one in await place.rows(kind) if _is(one, empty)]
        assert {after[name] for name in names.values()} == {None}
    empty = WHOLE["entities"] | {"status": nothing}
    await place.load(place.rows_file(f"e.{form}", [empty]))
    assert {one["status"] for one in await place.rows("entities")} == {"draft", "published"}
    assert [one["status"] for one in await place.rows("entities") if _is(one, empty)] == ["draft"]


async def test_json_lines_keep_or_clear_row_by_row(place: Place) -> None:
    rows = [NEWS[number] | {"summary": f"S {number}"} for number in range(3)]
    await place.load(place.rows_file("e.jsonl", rows))
    rows = [NEWS[0], NEWS[1] | {"summary": None}, NEWS[2] | {"summary": "new"}, NEWS[3]]
    await place.load(place.rows_file("e.jsonl", rows))
    found = {one["slug"]: one["summary"] for one in await place.rows("entities")}
    assert found == {"n-0": "S 0", "n-1": None, "n-2": "new", "n-3": None}


async def test_a_new_project_s_entity_needs_its_repository(place: Place) -> None:
    kit = {"entityType": "project", "title": "Kit", "slug": "kit"}
    for row in (kit, kit | {"repoUrl": None}):
        report = await place.load(place.rows_file("e.jsonl", [row]))
        assert report.refused == [(1, "a project needs repoUrl")]


async def test_what_is_looked_up_is_looked_up_by_batch(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await place.load(place.rows_file("n.jsonl", NEWS))
    asked: list[Any] = []
    execute = Connection.execute

    def counted(self: Connection, *arguments: Any, **named: Any) -> Any:
        asked.append(arguments[0])
        return execute(self, *arguments, **named)

    monkeypatch.setattr(Connection, "execute", counted)
    await place.load(place.rows_file("n.jsonl", NEWS))
    assert len(asked) < 20


async def test_search_console_with_one_dimension(place: Place) -> None:
    queries, pages = place.file("q.csv", QUERIES), place.file("p.csv", PAGES)
    with pytest.raises(BadFile, match=r"need also: pageUrl\. Say it with --page\."):
        await place.load(queries, **PERIOD)
    with pytest.raises(BadFile, match=r"need also: query\. Say it with --query\."):
        await place.load(pages, **PERIOD)
    with pytest.raises(BadFile, match="Say it with --page and --start and --end"):
        await place.load(queries)
    await place.load(queries, page=" https://x.example/rag ", **PERIOD)
    await place.load(pages, query="what is rag", **PERIOD)
    found = {(one["query"], one["page_url"]) for one in await place.rows("performance")}
    assert found == {
        ("rag", "https://x.example/rag"),
        ("vector", "https://x.example/rag"),
        ("what is rag", "https://x.example/a"),
    }


async def test_options_for_all_rows_that_cannot_be(place: Place) -> None:
    path = place.file("q.csv", QUERIES)
    for page in ("", "/rag", "https://x.example/" + "a" * 1000, "https://x.example/\udcff"):
        with pytest.raises(BadFile, match="Write --page as a whole URL"):
            await place.load(path, page=page, **PERIOD)
    for query in ("", "  ", "a\0b", "a" * 1001, "\udcff"):
        with pytest.raises(BadFile, match="Write --query as text of 1 to 1000"):
            await place.load(path, query=query, **PERIOD)
    with pytest.raises(BadFile, match="--page is for performance; these rows are entities"):
        await place.load(place.rows_file("e.jsonl", ENTITIES), page="https://x.example")
    short = {name: FIGURES[name] for name in FIGURES if name != "pageUrl"}
    report = await place.load(place.rows_file("f.jsonl", [short]))
    assert report.refused == [(1, "pageUrl is missing (--page says it for all rows)")]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "NaN"])
@pytest.mark.parametrize("column", ["Position", "CTR"])
async def test_figures_of_a_csv_are_finite(place: Place, column: str, value: str) -> None:
    cells = {"Query": "q", "Page": "https://x.example", "Clicks": "1", "Impressions": "2"}
    good = cells | {"Position": "1", "CTR": "50%"}
    path = place.rows_file("f.csv", [good, good | {"Query": "r", column: value}])
    report = await place.load(path, **PERIOD)
    assert report.refused == [(3, f"{column} must be a finite number")]
    assert await place.rows("performance") == []
