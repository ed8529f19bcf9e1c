"""Effective preferences have a size, whatever the groups of a user hold; what is left out is told.

Only the values that win are read, and in one statement.
"""

import random
import tracemalloc
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from sqlalchemy import delete, insert
from tests.packs.orchestrator.calls import BUILD, OF_BOB, PM, PM_OF_BOB, SORT, result
from tests.statements import noted_statements

from toolgate.packs.orchestrator.effective import effective_of
from toolgate.packs.orchestrator.records import Layer, Record
from toolgate.packs.orchestrator.sql.tables import groups, members, preferences
from toolgate.packs.orchestrator.vocabulary import STRENGTH, VALUE_TYPES
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

MIB, SCOPE = 1024 * 1024, 512 * 1024
THEN = "2026-01-05T09:00:00.000000Z"
TASK, PROJECT = ("task", SORT), ("project", OF_BOB)
SYSTEM, USER = ("system", ""), ("user", "bob")


def row(scope: tuple[str, str], key: str, value: str, value_type: str = "string") -> dict[str, Any]:
    """A preference as it is stored; the value is JSON."""
    return {
        "scope_type": scope[0],
        "scope_id": scope[1],
        "key": key,
        "value": value,
        "value_type": value_type,
        "size": len(value.encode()),
        "version": 1,
        "deleted": False,
        "updated_at": THEN,
        "updated_by": "x",
    }


def full(scope: tuple[str, str], prefix: str) -> list[dict[str, Any]]:
    """As much as a scope may hold, in eight values."""
    text = f'"{"x" * (SCOPE // 8 - 2)}"'
    return [row(scope, f"{prefix}.k{one}", text) for one in range(8)]


async def store(kit: Kit, rows: Iterable[dict[str, Any]]) -> None:
    every = list(rows)
    await kit.app.gate.database.write(lambda one: one.execute(insert(preferences), every))


async def join(kit: Kit, number: int) -> list[tuple[str, str]]:
    """So many groups of bob."""
    ids = [f"g{one:03}" for one in range(number)]
    made = [{"id": one, "display_name": "Group", "created_at": THEN} for one in ids]

    def work(connection: Any) -> None:
        connection.execute(insert(groups), made)
        connection.execute(insert(members), [{"user_id": "bob", "group_id": one} for one in ids])

    await kit.app.gate.database.write(work)
    return [("group", one) for one in ids]


@pytest.mark.parametrize("sources", [False, True], ids=["values", "with sources"])
async def test_many_full_groups_make_the_answer_no_larger(kit: Kit, sources: bool) -> None:
    for number, scope in enumerate(await join(kit, 12)):
        await store(kit, full(scope, f"of{number}"))
    await store(kit, [row(scope, "who", f'"{scope[0]}"') for scope in (SYSTEM, USER, PROJECT)])
    asked = {"task_id": SORT, "include_sources": sources}
    found = await result(kit, "db.preference.effective", PM_OF_BOB, **asked)
    assert found["effective"]["who"] == "project"
    assert found["effective"].keys() >= {f"of11.k{one}" for one in range(8)}, "the strongest"
    assert len(orjson.dumps(found)) < 4 * MIB
    left_out = {one["scope_id"]: one["keys"] for one in found["omitted"]}
    assert left_out["g000"] == 8
    assert {one["scope_type"] for one in found["omitted"]} == {"group"}
    shown = sum(one.startswith("of") for one in found["effective"])
    assert shown + sum(left_out.values()) == 12 * 8, "each is shown or told"


async def test_very_many_small_preferences_of_groups_fit_with_their_sources(kit: Kit) -> None:
    for number, scope in enumerate(await join(kit, 40)):
        await store(kit, (row(scope, f"k{number}-{one}", "1", "number") for one in range(1000)))
    asked = {"task_id": SORT, "include_sources": True}
    found = await result(kit, "db.preference.effective", PM_OF_BOB, **asked)
    assert len(orjson.dumps(found)) < 4 * MIB
    assert sum(one["keys"] for one in found["omitted"]) + len(found["sources"]) >= 40_000


async def test_values_that_others_override_do_not_count(kit: Kit) -> None:
    for scope in [*await join(kit, 12), USER, PROJECT, TASK]:
        await store(kit, full(scope, "same"))
    found = await result(kit, "db.preference.effective", PM_OF_BOB, task_id=SORT)
    assert len(found["effective"]["same.k7"]) == SCOPE // 8 - 2
    assert "omitted" not in found


async def test_what_an_admin_reserved_has_room_before_all_that_others_wrote(kit: Kit) -> None:
    scopes = await join(kit, 12)
    await store(kit, [row(scopes[0], "security.web_browse.allowed_domains", "[]", "array")])
    for number, scope in enumerate(scopes):
        await store(kit, full(scope, f"of{number}"))
    found = await result(kit, "db.preference.effective", PM_OF_BOB, task_id=SORT)
    assert found["effective"]["security.web_browse.allowed_domains"] == []
    assert found["omitted"]


async def test_values_that_do_not_fit_are_not_read(kit: Kit) -> None:
    text = f'"{"x" * (MIB - 2)}"'
    of_build = ("task", BUILD)
    await store(kit, (row(of_build, f"bulk.k{one:02}", text) for one in range(60)))
    found = await result(kit, "db.preference.effective", PM, task_id=BUILD)  # loaded once
    del found
    tracemalloc.start()
    with noted_statements() as statements:
        found = await result(kit, "db.preference.effective", PM, task_id=BUILD)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = [len(value) for key, value in found["effective"].items() if key.startswith("bulk.")]
    assert held == [MIB - 2] * 3
    assert found["omitted"] == [{"scope_type": "task", "scope_id": BUILD, "keys": 57}]
    assert peak < 30 * MIB, "the values alone would be twice that"
    assert len({one for one in statements if "orchestrator_" in one}) == 1


async def test_what_the_statement_chooses_is_what_a_model_of_all_rows_does(kit: Kit) -> None:
    by = random.Random(7)
    scopes = [SYSTEM, ("group", "designers"), *await join(kit, 2), USER, PROJECT, TASK]
    values = ["null", '"x"', '""', "0", "-1.5", "true", "false", "{}", '{"a":null}', "[]", "[1]"]
    rows = [
        row(scope, f"k{key}", by.choice(values), by.choice(VALUE_TYPES))
        for key in range(60)
        for scope in scopes
        if by.random() < 0.6
    ]
    await kit.app.gate.database.write(lambda one: one.execute(delete(preferences)))
    await store(kit, rows)
    asked = {"task_id": SORT, "include_sources": True}
    found = await result(kit, "db.preference.effective", PM_OF_BOB, **asked)
    model = effective_of(sorted(map(layer, rows), key=strength))
    assert found["effective"] == model.values
    told = {one["key"]: (one["scope_type"], one["scope_id"] or "") for one in found["sources"]}
    assert told == {key: (one.scope_type, one.scope_id) for key, one in model.sources.items()}
    reported = {(one["key"], one["scope_type"], one["scope_id"] or "") for one in found["invalid"]}
    wrong = {(one.record.key, one.scope_type, one.scope_id) for one in model.invalid}
    assert (reported, len(wrong) > 100) == (wrong, True)


def layer(stored: dict[str, Any]) -> Layer:
    names = ("key", "value_type", "version", "updated_at", "updated_by")
    given = {name: stored[name] for name in names}
    record = Record(value=orjson.loads(stored["value"]), **given)
    return Layer(stored["scope_type"], stored["scope_id"], record)


def strength(one: Layer) -> tuple[int, str]:
    return STRENGTH[one.scope_type], one.scope_id
