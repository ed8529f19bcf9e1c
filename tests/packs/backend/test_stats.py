"""get_stats: numbers that are exact at every moment, and cheap to ask for."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, select
from sqlalchemy.engine import make_url
from tests.servers import Server, running_server
from tests.statements import noted_statements

from toolgate.db.tables import changes
from toolgate.packs.backend.sql.count_buckets import (
    BITS,
    LEVELS,
    add_to_buckets,
    buckets_after,
    numbers_after,
)
from toolgate.packs.backend.sql.counts import SqlCounters
from toolgate.packs.backend.stats.counters import CountedDocuments
from toolgate.packs.backend.stats.counting import Counted, Numbers, count, told, totals
from toolgate.ports.documents import Delete, Merge, Query, Set, Write
from toolgate.testing import Kit, opened_kit
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio

FUTURE, PAST = 4_000_000_000, 1_000_000_000


def user(plan: str = "premium", ends: Any = FUTURE, **more: Any) -> dict[str, Any]:
    frequency = more.pop("frequency", "monthly")
    subscription = {
        "product": {"id": plan},
        "status": more.pop("status", "active"),
        "expires": {"timestampUNIX": ends},
        "payment": {"frequency": frequency},
    }
    return {"subscription": subscription, **more}


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, writes=True, database__url=database_url) as opened:
        yield opened


async def store(kit: Kit, *writes: Write) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, *writes)


async def stats(kit: Kit, **arguments: Any) -> dict[str, Any]:
    outcome = await kit.call("get_stats", **arguments)
    assert outcome.status == 200, outcome.body
    return outcome.body


def counters(kit: Kit) -> SqlCounters:
    return SqlCounters(kit.app.gate.database)


async def brute_force(kit: Kit, now: int) -> dict[str, Any]:
    """The same numbers, from every document there is."""
    documents = kit.app.documents.of("backend")
    users = [one.fields for one in await documents.query(Query("users"))]
    tokens = await documents.query(Query("notifications"))
    plans: dict[str, Any] = {}
    overall = {"total": 0, "exempt": 0}
    for one in users:
        held = one.get("subscription", {})
        ends = held.get("expires", {}).get("timestampUNIX", 0)
        if not isinstance(ends, int) or ends < now or held.get("status") == "cancelled":
            continue
        plan = plans.setdefault(
            held["product"]["id"], {"total": 0, "monthly": 0, "annually": 0, "exempt": 0}
        )
        roles = one.get("roles", {})
        if roles.get("admin") or roles.get("vip"):
            overall["exempt"] += 1
            plan["exempt"] += 1
            continue
        overall["total"] += 1
        plan["total"] += 1
        frequency = held["payment"]["frequency"]
        plan[frequency] = plan.get(frequency, 0) + 1
    return {
        "users": {"total": len(users)},
        "notifications": {"total": len(tokens)},
        "subscriptions": {"totals": overall, "plans": plans},
    }


async def test_what_is_counted(kit: Kit) -> None:
    await store(
        kit,
        Set("users", "monthly", user()),
        Set("users", "yearly", user(frequency="annually")),
        Set("users", "weekly", user("ultimate", frequency="weekly")),
        Set("users", "suspended", user(status="suspended")),
        Set("users", "cancelled", user(status="cancelled")),
        Set("users", "expired", user(ends=PAST)),
        Set("users", "admin", user(roles={"admin": True})),
        Set("users", "vip", user(roles={"vip": True})),
        Set("users", "free", {}),
        Set("users", "odd", user(ends="soon")),
        Set("users/free/notes", "1", {}),
        Set("notifications", "token-1", {"token": "token-1"}),
        Set("orders", "1", {}),
    )
    found = await stats(kit)
    assert found == {
        "users": {"total": 10, "online": 0},
        "notifications": {"total": 1},
        "subscriptions": {
            "totals": {"total": 4, "exempt": 2},
            "plans": {
                "premium": {"total": 3, "monthly": 2, "annually": 1, "exempt": 2},
                "ultimate": {"total": 1, "monthly": 0, "annually": 0, "exempt": 0, "weekly": 1},
            },
        },
        "brand": "toolgate",
    }


async def test_who_is_online_is_told_by_the_application(kit: Kit) -> None:
    await kit.call("firestore_write", path="sessions/online", document={"a": {}, "b": {}})
    await kit.call("firestore_write", path="gatherings/online", document={"c": {}})
    assert (await stats(kit))["users"]["online"] == 3


async def test_what_others_note_in_meta_stats_is_told(kit: Kit) -> None:
    noted = {"backups": {"lastBackup": {"date": "d"}}, "syncUsers": {"lastPageToken": "t"}}
    await store(kit, Set("meta", "stats", noted))
    found = await stats(kit)
    assert found["backups"] == noted["backups"]
    assert found["syncUsers"] == noted["syncUsers"]


@pytest.mark.parametrize("folded", [False, True])
async def test_numbers_follow_every_write_at_once(kit: Kit, folded: bool) -> None:
    """Whatever was counted before: each write is in the next answer."""
    chance = random.Random(5)
    followed = counters(kit)
    for step in range(12):
        writes: list[Write] = []
        for number in range(10):
            uid = f"u{chance.randrange(15)}"
            plan = chance.choice(["basic", "premium", "ultimate"])
            frequency = chance.choice(["monthly", "annually"])
            record = user(plan, chance.choice([PAST, FUTURE]), frequency=frequency)
            writes.append(
                chance.choice(
                    [
                        Set("users", uid, record),
                        Merge("users", uid, {"subscription": {"status": "cancelled"}}),
                        Merge("users", uid, {"roles": {"vip": chance.random() < 0.5}}),
                        Delete("users", uid),
                        Set("notifications", f"t{number}", {}),
                        Delete("notifications", f"t{number}"),
                    ]
                )
            )
        # A cancelled record without a product is none that the plain count below understands.
        await store(kit, *writes)
        if folded and step % 3:
            await followed.catch_up()
        now = await followed.now()
        assert told(now) == told(await followed.recount(keep=False))


async def test_sign_ups_and_cancels_at_once_equal_brute_force(kit: Kit) -> None:
    await store(kit, *(Set("users", f"old{n}", user()) for n in range(10)))
    await counters(kit).catch_up()

    async def sign_up(number: int) -> None:
        document = user(("basic", "premium")[number % 2])
        outcome = await kit.call("firestore_write", path=f"users/new{number}", document=document)
        assert outcome.status == 200, outcome.body

    async def cancel(number: int) -> None:
        document = {"subscription": {"status": "cancelled"}}
        outcome = await kit.call("firestore_write", path=f"users/old{number}", document=document)
        assert outcome.status == 200, outcome.body

    async def count_meanwhile() -> None:
        for _ in range(5):
            await counters(kit).catch_up()

    await asyncio.gather(
        *map(sign_up, range(50)), *map(cancel, range(5)), count_meanwhile(), count_meanwhile()
    )
    found = await stats(kit)
    wanted = await brute_force(kit, 2_000_000_000)
    assert found["users"]["total"] == wanted["users"]["total"] == 60
    assert found["subscriptions"] == wanted["subscriptions"]
    assert wanted["subscriptions"]["totals"]["total"] == 55


async def test_a_write_that_fails_counts_for_nothing(kit: Kit) -> None:
    await counters(kit).catch_up()
    outcome = await kit.call("firestore_write", path="users/a", document={"a": 1}, dry_run=True)
    assert outcome.status == 200
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Set("users", "b", {}))
        tx.abandon()
    assert (await stats(kit))["users"]["total"] == 0


async def test_a_subscription_counts_to_the_second_in_which_it_ends(kit: Kit) -> None:
    second = 1_800_000_000
    ends = [second + step for step in (-70_000, -257, -1, 0, 1, 255, 256, 65_536, 2**24, 2**33)]
    await store(kit, *(Set("users", f"u{n}", user(ends=end)) for n, end in enumerate(ends)))
    kept = SqlCounters(kit.app.gate.database, clock=lambda: float(moment))
    moment = second
    await kept.catch_up()
    for moment in (second - 70_001, second - 1, second, second + 1, second + 300, second + 2**25):
        wanted = sum(end >= moment for end in ends)
        found = told(await kept.now())["subscriptions"]["totals"]["total"]
        assert found == wanted, moment


async def test_numbers_of_before_are_counted_when_the_log_no_longer_has_them(kit: Kit) -> None:
    await store(kit, *(Set("users", f"u{n}", user()) for n in range(3)))
    await kit.app.gate.database.write(lambda connection: connection.execute(changes.delete()))
    assert (await stats(kit))["users"]["total"] == 3
    await counters(kit).catch_up()
    await store(kit, Delete("users", "u1"))
    assert (await stats(kit))["users"]["total"] == 2


async def test_an_update_counts_again_and_stores_the_numbers(kit: Kit) -> None:
    await store(kit, Set("users", "a", user()), Set("meta", "stats", {"syncUsers": {"n": 1}}))
    await counters(kit).catch_up()
    spoil = "UPDATE backend_counts_derived SET number = 70"
    await kit.app.gate.database.write(lambda connection: connection.exec_driver_sql(spoil))
    assert (await stats(kit))["users"]["total"] == 70
    found = await stats(kit, update=True)
    assert found["users"] == {"total": 1, "online": 0}
    assert found["metadata"]["tag"] == "admin/stats"
    stored = (await kit.call("firestore_read", path="meta/stats")).body
    assert stored["users"] == {"total": 1, "online": 0}
    assert stored["subscriptions"]["totals"] == {"total": 1, "exempt": 0}
    assert stored["syncUsers"] == {"n": 1}
    assert (await stats(kit))["users"]["total"] == 1


async def test_an_update_of_a_part_stores_that_part(kit: Kit) -> None:
    await store(kit, Set("users", "a", user()))
    await stats(kit, update={"users": True})
    stored = (await kit.call("firestore_read", path="meta/stats")).body
    assert stored["users"] == {"total": 1}
    assert "subscriptions" not in stored


async def test_without_an_update_nothing_is_written(kit: Kit) -> None:
    await store(kit, Set("users", "a", user()))
    last = select(changes.c.seq).order_by(changes.c.seq.desc())
    before = await kit.app.gate.database.read(lambda one: one.scalar(last))
    for given in ({}, {"update": None}, {"update": False}, {"update": {"users": False}}):
        await stats(kit, **given)
    assert await kit.app.gate.database.read(lambda one: one.scalar(last)) == before


async def test_a_dry_run_of_an_update_keeps_nothing(kit: Kit) -> None:
    await store(kit, Set("users", "a", user()))
    outcome = await kit.call("get_stats", update=True, dry_run=True)
    assert outcome.status == 200, outcome.body
    assert (await kit.call("firestore_read", path="meta/stats")).body == {}


@pytest.mark.parametrize(
    ("given", "told_"),
    [
        ({"update": "yes"}, "update must be true or false, or an object with any of notifications"),
        ({"update": {"nothing": True}}, "update.nothing is not known: update must be true or"),
        ({"update": {"users": 1}}, "update.users is not true or false: update must be true or"),
        ({"x": 1}, "'x'"),
    ],
)
async def test_an_update_that_cannot_be(kit: Kit, given: dict[str, Any], told_: str) -> None:
    outcome = await kit.send("get_stats", given)
    assert (outcome.status, told_ in outcome.body["error"]) == (400, True), outcome.body


async def test_read_only_refuses_an_update_alone(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, policy__read_only=True) as kit:
        assert (await kit.call("get_stats")).status == 200
        assert (await kit.call("get_stats", update=True)).status == 403
        assert (await kit.call("get_stats", update={"users": True})).status == 403


async def test_the_rows_read_stay_few_however_many_users_there_are(kit: Kit) -> None:
    async def statements() -> tuple[int, int]:
        with noted_statements() as noted:
            await stats(kit)
        every = (
            "SELECT count(*) FROM backend_counts_derived WHERE level > 0 OR bucket >= 4000000000"
        )
        rows: Any = await kit.app.gate.database.read(
            lambda one: one.exec_driver_sql(every).scalar()
        )
        assert not any("documents.id >" in one for one in noted), "nobody is looked through"
        ours = ("backend_count", "FROM changes", "FROM documents")
        return sum(any(name in one for name in ours) for one in noted), rows

    followed = counters(kit)
    await store(kit, *(Set("users", f"a{n}", user()) for n in range(100)))
    await followed.catch_up()
    few = await statements()
    for batch in range(4):
        await store(kit, *(Set("users", f"b{batch}-{n}", user()) for n in range(500)))
    await followed.catch_up()
    many = await statements()
    assert many[1] == few[1]
    # On PostgreSQL a follower looks twice where it stopped within what one snapshot sees.
    assert abs(many[0] - few[0]) <= 1


async def test_counting_in_the_database_equals_counting_every_record(kit: Kit) -> None:
    """Whatever records have where numbers look."""
    chance = random.Random(7)
    odd: list[Any] = [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        1e300,
        2**62,
        "",
        "x" * 300,
        "cancelled",
        [],
        {},
    ]
    odd += [FUTURE, PAST, ["admin"], {"id": "premium"}, "ünï\\\"'", "premium", "monthly"]

    def value() -> Any:
        return chance.choice(odd)

    def record() -> dict[str, Any]:
        whole = user(value(), value(), frequency=value(), status=value())
        whole["roles"] = chance.choice([{"admin": value(), "vip": value()}, value()])
        for name in chance.sample(["product", "expires", "payment", "status"], 2):
            whole["subscription"][name] = chance.choice([value(), whole["subscription"][name]])
        return chance.choice([whole, whole, whole, {"subscription": value()}, {"roles": value()}])

    records = {f"u{number:04}": record() for number in range(2_500)}
    await store(kit, *(Set("users", uid, one) for uid, one in records.items()))
    await store(kit, *(Set("notifications", f"t{number}", {}) for number in range(3)))
    wanted: Numbers = Numbers()
    for uid, one in records.items():
        count(wanted, f"users/{uid}", one, 1)
    for number in range(3):
        count(wanted, f"notifications/t{number}", {}, 1)
    assert len(wanted) > 50
    for keep in (False, True):
        found = await counters(kit).recount(keep=keep)
        assert +Counter(found) == +Counter(totals(wanted, int(time.time())))
    assert +Counter(await counters(kit).now()) == +Counter(found)


async def test_the_buckets_read_are_bounded_however_many_ends_there_are(kit: Kit) -> None:
    second = 1_800_000_000
    database = kit.app.gate.database
    for first in (0, 6_000):
        some = {
            (Counted("users", "premium", "monthly"), second + number * 911): 1
            for number in range(first, first + 6_000)
        }
        await database.write(lambda one, some=some: add_to_buckets(one, Numbers(some)))
        read = select(func.count()).select_from(buckets_after(second + 7).subquery())
        rows = await database.read(lambda one, read=read: one.scalar(read)) or 0
        assert 50 < rows <= LEVELS * 2**BITS, "of one kind of subscription"
    if database.dialect == "sqlite":
        words = numbers_after(second).compile(compile_kwargs={"literal_binds": True})
        explain = f"EXPLAIN QUERY PLAN {words}"
        plan = str(await database.read(lambda one: one.exec_driver_sql(explain).all()))
        assert plan.count("SEARCH backend_counts_derived USING") == LEVELS + 1
        assert "SCAN backend_counts_derived" not in plan


async def test_where_no_log_is_kept_numbers_are_those_of_the_last_update() -> None:
    memory = MemoryDocuments()
    every = [Set("users", f"u{n:04}", user()) for n in range(1203)]
    await memory.write(None, *every, Set("notifications", "t", {}))  # type: ignore[arg-type]
    kept = CountedDocuments(memory)
    assert await kept.now() is None
    found = told(await kept.recount(keep=True))
    assert found["users"]["total"] == found["subscriptions"]["totals"]["total"] == 1203
    assert found["notifications"]["total"] == 1


def test_a_second_beyond_all_time_is_the_last() -> None:
    numbers: Numbers = Numbers()
    for odd in (10**18, 1e300, float("inf"), True, -5, None):
        count(numbers, "users/a", user(ends=odd), 1)
    assert told(totals(numbers, 0))["subscriptions"]["totals"]["total"] == 2


# With two workers


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def two_workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    settings: dict[str, Any] = {"server__workers": 2}
    if request.param == "postgresql":
        room: str = request.getfixturevalue("postgres_room")
        with psycopg.connect(room, autocommit=True) as connection:
            connection.execute("DROP DATABASE IF EXISTS stats")
            connection.execute("CREATE DATABASE stats")
        url = make_url(room).set(database="stats").render_as_string(hide_password=False)
        settings["database__url"] = url
    with running_server(tmp_path_factory, **settings) as started:
        yield started


@pytest.mark.timeout(600)
def test_the_route_understands_an_update_in_the_query(two_workers: Server) -> None:
    with two_workers.client() as admin:
        path = "/backend-manager/admin/stats"
        before = admin.get(path).json()["users"]["total"]
        body = {"path": "users/somebody-new", "document": {"a": 1}}
        assert admin.post("/backend-manager/admin/firestore", json=body).status_code == 200
        for _ in range(4):  # whichever worker answers
            assert admin.get(path).json()["users"]["total"] == before + 1
        found = admin.get(path, params={"update": '{"users":true}'})
        assert (found.status_code, found.json()["users"]["total"]) == (200, before + 1)
        assert found.json()["metadata"]["tag"] == "admin/stats"
        assert admin.get(path, params={"update": "true"}).status_code == 200
        assert admin.get(path, params={"update": "maybe"}).status_code == 400
