"""Pack `content` through the gate, beside the same SQL by hand on the same database.

Ours is a whole call: arguments checked, policy asked, limits counted, audited, answered as JSON.
By hand is what a program of twenty lines would do: a plain driver, one count, one page, JSON.
Times are of the wall clock, the median of many calls, the least of several interleaved rounds.
"""

import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import psycopg
from sqlalchemy import make_url
from tests.databases import running_postgres

from bench.content_data import MINE, NEEDLE, NEEDLES, ROOT, Size, fill
from toolgate.testing import Kit, opened_kit

SMALL = Size(projects=1, rows=10_000, entities=1_000)
LARGE = Size(projects=50, rows=1_000_000, entities=100_000)
LATE = 500
CALLS, ROUNDS = 30, 5

Ask = Callable[[], Awaitable[bytes]]
Asks = dict[str, tuple[Ask, Ask]]
Times = dict[str, tuple[float, float]]

COLUMNS = (
    "id, project_id, entity_id, page_url, query, impressions, clicks, ctr, avg_position, "
    "date_start, date_end, captured_at"
)
ORDER = "date_start DESC, date_end DESC, query, page_url, id DESC"
EDGES = """
WITH near AS (
    SELECT id, from_entity, to_entity FROM content_relations
    WHERE project_id = ? AND (from_id = ? OR to_id = ?)
), reached AS (SELECT from_entity AS id FROM near UNION SELECT to_entity FROM near)
SELECT r.id, r.relation_type, r.from_id, r.to_id, r.notes, r.created_at,
       e.id, e.entity_type, e.title, e.slug, e.status
FROM content_relations r
LEFT JOIN content_entities e ON e.project_id = r.project_id AND e.id =
    CASE WHEN r.to_id = ? OR r.from_entity NOT IN (SELECT id FROM reached)
    THEN r.from_entity ELSE r.to_entity END
WHERE r.id IN (
    SELECT id FROM near
    UNION SELECT id FROM content_relations
        WHERE project_id = ? AND from_id IN (SELECT id FROM reached)
    UNION SELECT id FROM content_relations
        WHERE project_id = ? AND to_id IN (SELECT id FROM reached))
ORDER BY CASE WHEN r.from_id = ? OR r.to_id = ? THEN 1 ELSE 2 END, r.created_at DESC, r.id DESC
"""


class ByHand:
    """The same reads with nothing but a driver."""

    def __init__(self, url: str) -> None:
        self.sqlite = url.startswith("sqlite")
        if self.sqlite:
            self._driver: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        else:
            self._driver = psycopg.connect(url, autocommit=True)

    def all(self, sql: str, *values: Any) -> list[Any]:
        sql = sql if self.sqlite else sql.replace("?", "%s")
        done = self._driver.execute(sql, values)
        return done.fetchall() if done.description else []

    async def page(self, number: int) -> bytes:
        own = "FROM content_search_performance WHERE project_id = ?"
        return self._page(own, [MINE], number)

    async def search(self) -> bytes:
        table, wanted = "content_search_performance", NEEDLE.casefold()
        own = f"FROM {table} WHERE project_id = ? AND "
        if not self.sqlite:
            return self._page(f"{own} query_folded LIKE ?", [MINE, f"%{wanted}%"], 1)
        found = f"SELECT rowid FROM {table}_fts WHERE {table}_fts MATCH ?"
        trigrams = " AND ".join(f'"{wanted[at : at + 3]}"' for at in (0, 3, 6, 9, 11))
        own = own.replace("project_id", "+project_id")
        chosen = f"{own} number IN ({found}) AND instr(query_folded, ?) > 0"
        asked = f'project_end : "{MINE[-3:]}" AND query_folded : ({trigrams})'
        return self._page(chosen, [MINE, asked, wanted], 1)

    def _page(self, chosen: str, values: list[Any], number: int) -> bytes:
        ((total,),) = self.all(f"SELECT count(*) {chosen}", *values)
        place = f"ORDER BY {ORDER} LIMIT 20 OFFSET {(number - 1) * 20}"
        rows = self.all(f"SELECT {COLUMNS} {chosen} {place}", *values)
        names = COLUMNS.split(", ")
        data = [dict(zip(names, row, strict=True)) for row in rows]
        place = {"page": number, "limit": 20, "total": total, "hasMore": number * 20 < total}
        return orjson.dumps({"data": data, "pagination": place})

    async def graph(self) -> bytes:
        own = "SELECT * FROM content_entities WHERE project_id = ? AND id = ?"
        (root,) = self.all(own, MINE, ROOT)
        own = MINE
        edges = self.all(EDGES, own, ROOT, ROOT, ROOT, own, own, ROOT, ROOT)
        names = ("id", "relationType", "fromEntityId", "toEntityId", "notes", "createdAt")
        ends = ("id", "entityType", "title", "slug", "status")
        shown = [
            dict(zip(names, row[:6], strict=True))
            | {"relatedEntity": dict(zip(ends, row[6:], strict=True))}
            for row in edges
        ]
        return orjson.dumps({"root": root, "relationships": shown})


def _asks(kit: Kit, hand: ByHand) -> Asks:
    def ours(tool: str, **arguments: Any) -> Ask:
        async def ask() -> bytes:
            outcome = await kit.send(tool, arguments)
            assert outcome.error is None, outcome.text
            return outcome.raw

        return ask

    def page(number: int, **more: Any) -> Ask:
        return ours("list_search_performance", projectId=MINE, page=number, **more)

    return {
        "page 1": (page(1), lambda: hand.page(1)),
        f"page {LATE}": (page(LATE), lambda: hand.page(LATE)),
        "substring": (page(1, query=NEEDLE), hand.search),
        "graph, depth 2": (
            ours("get_entity_graph", projectId=MINE, entityId=ROOT, depth=2),
            hand.graph,
        ),
    }


async def _times(asks: Asks) -> Times:
    least = {name: [float("inf")] * 2 for name in asks}
    for _ in range(ROUNDS):
        for name, both in asks.items():
            for side, ask in enumerate(both):
                least[name][side] = min(least[name][side], await _median(ask))
    return {name: (ours, hand) for name, (ours, hand) in least.items()}


async def _median(ask: Ask) -> float:
    took: list[float] = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await ask()
        took.append(time.perf_counter() - started)
    return statistics.median(took) * 1e3


@asynccontextmanager
async def _filled(folder: Path, url: str, size: Size) -> AsyncIterator[Asks]:
    async with opened_kit(folder, database__url=url) as kit:
        started = time.perf_counter()
        await fill(kit.app.gate.database, size)
        told = f"  {size.rows:,} rows and {size.entities:,} entities in {size.projects} projects"
        print(f"{told}: loaded in {time.perf_counter() - started:.0f} s", flush=True)
        hand = ByHand(url)
        hand.all("ANALYZE" if hand.sqlite else "VACUUM ANALYZE")
        asks = _asks(kit, hand)
        await _agree(asks)
        yield asks


async def _agree(asks: Asks) -> None:
    """Both sides answer the same rows."""
    for name, (ours, hand) in asks.items():
        mine, theirs = orjson.loads(await ours()), orjson.loads(await hand())
        if name.startswith("graph"):
            assert mine["data"]["relationships"] == theirs["relationships"], name
        else:
            assert [row["id"] for row in mine["data"]] == [row["id"] for row in theirs["data"]], (
                name
            )
            assert mine["pagination"] == theirs["pagination"], name
    found = orjson.loads(await asks["substring"][0]())
    assert found["pagination"]["total"] == NEEDLES


async def measure(kind: str, url: Callable[[str], str]) -> None:
    print(f"\n{kind}", flush=True)
    measured: list[Times] = []
    for name, size in (("small", SMALL), ("large", LARGE)):
        with tempfile.TemporaryDirectory() as folder:
            async with _filled(Path(folder), url(f"{folder}/{name}"), size) as asks:
                measured.append(await _times(asks))
    _print(*measured)


def _print(small: Times, large: Times) -> None:
    print(f"\n  {'':16}{'ours ms':>9}{'by hand ms':>12}{'ratio':>8}{'at 1 million / 10,000':>24}")
    for name, (ours, hand) in large.items():
        ratio, grown = ours / hand, ours / small[name][0]
        print(f"  {name:16}{ours:>9.2f}{hand:>12.2f}{ratio:>8.2f}{grown:>24.2f}")
    late, first = large[f"page {LATE}"][0], large["page 1"][0]
    print(f"  page {LATE} / page 1: {late / first:.2f}")


async def main() -> None:
    print("Pack content: a whole call, beside the same SQL by hand; times of the large size")
    await measure("SQLite", lambda path: f"sqlite:///{path}.db")
    with running_postgres() as server:
        await measure("PostgreSQL", lambda path: _new_database(server.get_uri(), Path(path).name))


def _new_database(uri: str, name: str) -> str:
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return make_url(uri).set(database=name).render_as_string(hide_password=False)
