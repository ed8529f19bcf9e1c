"""Preferences: one scope's own, and what of all scopes applies to a task."""

from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    OF_BOB,
    PA_OF_BOB,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    refused,
    result,
)
from tests.statements import noted_statements

from toolgate.packs.orchestrator.effective import effective_of
from toolgate.packs.orchestrator.records import Layer, Record, fits
from toolgate.packs.orchestrator.sql.tables import preferences
from toolgate.packs.orchestrator.vocabulary import STRENGTH, VALUE_TYPES
from toolgate.testing import Kit

ALICE = {"scope_type": "user", "scope_id": "alice"}
SYSTEM = {"scope_type": "system"}
STYLE = "output.summary_style"


def new(key: str, value: Any, value_type: str = "string") -> dict[str, Any]:
    return {"key": key, "value": value, "value_type": value_type}


@pytest.mark.anyio
async def test_a_preference_is_created_read_changed_and_deleted(kit: Kit) -> None:
    made = await result(kit, "db.preference.create", **ALICE, **new("a.b", "x"))
    assert (made["scope_type"], made["scope_id"], made["version"]) == ("user", "alice", 1)
    assert await result(kit, "db.preference.get", **ALICE, key="a.b") == made
    changed = await result(
        kit, "db.preference.update", **ALICE, **new("a.b", "y"), expected_version=1
    )
    assert (changed["value"], changed["version"]) == ("y", 2)
    assert await result(kit, "db.preference.delete", **ALICE, key="a.b") == {}
    assert (await refused(kit, "db.preference.get", **ALICE, key="a.b"))["type"] == "not_found"


@pytest.mark.anyio
@pytest.mark.parametrize("scope_type", ["user", "group", "project", "task"])
@pytest.mark.parametrize("tool", ["get", "list", "create", "update", "delete"])
async def test_a_scope_needs_its_id(kit: Kit, tool: str, scope_type: str) -> None:
    more = {"get": {"key": "a"}, "list": {}, "delete": {"key": "a"}}.get(tool, new("a", "x"))
    error = await refused(kit, f"db.preference.{tool}", scope_type=scope_type, **more)
    assert error["type"] == "invalid_arguments"
    assert error["message"] == "scope_id required when scope_type is not system"


@pytest.mark.anyio
async def test_the_system_has_no_id(kit: Kit) -> None:
    error = await refused(kit, "db.preference.get", **SYSTEM, scope_id="x", key="a")
    assert error["message"] == "scope_id must be left out when scope_type is system"
    made = await result(kit, "db.preference.create", **SYSTEM, **new("a", "x"))
    assert made["scope_id"] is None


@pytest.mark.anyio
async def test_one_key_of_the_system_is_created_once(kit: Kit) -> None:
    ends: list[str] = []

    async def create(number: int) -> None:
        outcome = await kit.call("db.preference.create", **SYSTEM, **new("race", str(number)))
        ends.append(outcome.error_type or "success")

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(create, number)
    assert sorted(ends) == ["conflict"] * 19 + ["success"]


@pytest.mark.anyio
async def test_a_get_does_not_fall_back_to_a_weaker_scope(kit: Kit) -> None:
    project = {"scope_type": "project", "scope_id": WEBSITE}
    error = await refused(kit, "db.preference.get", **project, key="language.preferred")
    assert error["type"] == "not_found"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "scope",
    [
        {"scope_type": "user", "scope_id": "nobody"},
        {"scope_type": "group", "scope_id": "nobody"},
        {"scope_type": "project", "scope_id": ABSENT},
        {"scope_type": "task", "scope_id": ABSENT},
    ],
    ids=["user", "group", "project", "task"],
)
async def test_nothing_is_stored_for_what_does_not_exist(kit: Kit, scope: dict[str, str]) -> None:
    error = await refused(kit, "db.preference.create", **scope, **new("a", "x"))
    assert error["type"] == "not_found"
    assert await result(kit, "db.preference.list", **scope) == {"entries": []}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("foreign", "absent"),
    [
        ({"scope_type": "user", "scope_id": "alice"}, {"scope_type": "user", "scope_id": "x"}),
        (
            {"scope_type": "project", "scope_id": WEBSITE[:-2] + "a2"},
            {"scope_type": "project", "scope_id": ABSENT},
        ),
        ({"scope_type": "task", "scope_id": SORT}, {"scope_type": "task", "scope_id": ABSENT}),
    ],
    ids=["user", "project", "task"],
)
async def test_anothers_scope_is_as_good_as_none(
    kit: Kit, foreign: dict[str, str], absent: dict[str, str]
) -> None:
    who = PM_OF_ALICE if foreign["scope_id"] == SORT else PM_OF_BOB
    told = [
        await refused(kit, "db.preference.get", who, **scope, key=STYLE)
        for scope in (foreign, absent)
    ]
    assert told[0] == told[1]
    for scope in (foreign, absent):
        assert await result(kit, "db.preference.list", who, **scope) == {"entries": []}
        error = await refused(kit, "db.preference.create", who, **scope, **new("a", "x"))
        assert error["type"] == "not_found"


@pytest.mark.anyio
async def test_a_member_reads_the_groups_preferences(kit: Kit) -> None:
    group = {"scope_type": "group", "scope_id": "designers"}
    await result(kit, "db.preference.create", **group, **new("a", "x"))
    assert (await result(kit, "db.preference.get", PA_OF_BOB, **group, key="a"))["value"] == "x"
    assert (await refused(kit, "db.preference.get", PM_OF_ALICE, **group, key="a"))["type"] == (
        "not_found"
    )


@pytest.mark.anyio
@pytest.mark.parametrize("space", ["standards", "security", "model_routing", "agents"])
async def test_reserved_keys_are_an_admins(kit: Kit, space: str) -> None:
    arguments = {**SYSTEM, **new(f"{space}.x", "y")}
    assert (await refused(kit, "db.preference.create", PM, **arguments))["type"] == "access_denied"
    assert await result(kit, "db.preference.create", **arguments)


@pytest.mark.anyio
async def test_the_strongest_scope_wins(kit: Kit) -> None:
    scopes = [
        SYSTEM,
        {"scope_type": "group", "scope_id": "designers"},
        {"scope_type": "user", "scope_id": "bob"},
        {"scope_type": "project", "scope_id": OF_BOB},
        {"scope_type": "task", "scope_id": SORT},
    ]
    for scope in scopes:
        await result(kit, "db.preference.create", **scope, **new("who", scope["scope_type"]))
        found = await result(kit, "db.preference.effective", task_id=SORT, include_sources=True)
        assert found["effective"]["who"] == scope["scope_type"]
        (source,) = [one for one in found["sources"] if one["key"] == "who"]
        assert source["scope_type"] == scope["scope_type"]
        assert source["scope_id"] == scope.get("scope_id")
    await result(kit, "db.preference.delete", **scopes[-1], key="who")
    found = await result(kit, "db.preference.effective", task_id=SORT)
    assert found["effective"]["who"] == "project"
    assert "sources" not in found


@pytest.mark.anyio
async def test_null_hides_what_weaker_scopes_say(kit: Kit) -> None:
    task = {"scope_type": "task", "scope_id": BUILD}
    await result(kit, "db.preference.create", **task, **new(STYLE, None))
    found = await result(kit, "db.preference.effective", task_id=BUILD, include_sources=True)
    assert STYLE not in found["effective"]
    (source,) = [one for one in found["sources"] if one["key"] == STYLE]
    assert source == {"key": STYLE, **task, "version": 1}, "what hides it is named"


@pytest.mark.anyio
async def test_a_value_that_contradicts_its_type_is_skipped_and_reported(kit: Kit) -> None:
    task = {"scope_type": "task", "scope_id": BUILD}
    await result(kit, "db.preference.create", **task, **new(STYLE, "prose"))
    wrong = update(preferences).where(preferences.c.scope_type == "task").values(value="7")
    await kit.app.gate.database.write(lambda connection: connection.execute(wrong))
    found = await result(kit, "db.preference.effective", task_id=BUILD)
    assert found["effective"][STYLE] == "bullets"
    (invalid,) = found["invalid"]
    assert (invalid["key"], invalid["scope_type"], invalid["scope_id"]) == (STYLE, "task", BUILD)
    assert "not of type string" in invalid["reason"]


@pytest.mark.anyio
async def test_what_applies_is_asked_in_one_statement(kit: Kit) -> None:
    await result(kit, "db.preference.effective", task_id=BUILD)
    with noted_statements() as statements:
        await result(kit, "db.preference.effective", task_id=BUILD)
    assert len([one for one in statements if "orchestrator_" in one]) == 1


@pytest.mark.anyio
async def test_a_foreign_task_is_as_good_as_none(kit: Kit) -> None:
    told = [
        await refused(kit, "db.preference.effective", PM_OF_ALICE, task_id=one)
        for one in (SORT, ABSENT)
    ]
    assert told == [{"type": "not_found", "message": "Task not found"}] * 2


SCOPES = [*STRENGTH]
VALUES = st.sampled_from([None, "x", 1, True, [1], {"a": 1}])
LAYERS = st.lists(
    st.tuples(
        st.sampled_from(SCOPES),
        st.sampled_from(["g1", "g2"]),
        st.sampled_from(["k1", "k2", "k3"]),
        VALUES,
        st.sampled_from(VALUE_TYPES),
    ),
    unique_by=lambda one: (one[0], one[1] if one[0] == "group" else "", one[2]),
)


def _layer(one: tuple[Any, ...]) -> Layer:
    scope, group, key, value, value_type = one
    record = Record(
        key=key, value=value, value_type=value_type, version=1, updated_at="", updated_by=""
    )
    return Layer(scope, group if scope == "group" else "", record)


@given(LAYERS)
def test_the_effective_value_is_that_of_a_naive_model(rows: list[tuple[Any, ...]]) -> None:
    layers = sorted(map(_layer, rows), key=lambda one: (STRENGTH[one.scope_type], one.scope_id))
    found = effective_of(layers)
    for key in ("k1", "k2", "k3"):
        valid = [
            one
            for one in layers
            if one.record.key == key
            and (one.record.value is None or fits(one.record.value, one.record.value_type))
        ]
        strongest = valid[-1].record.value if valid else None
        assert found.values.get(key) == strongest
        assert (key in found.values) == (strongest is not None)
    assert len(found.invalid) == sum(
        one.record.value is not None and not fits(one.record.value, one.record.value_type)
        for one in layers
    )
    assert orjson.dumps(found.values)


@pytest.mark.anyio
async def test_the_id_of_a_task_may_be_in_capitals(kit: Kit) -> None:
    task = (await result(kit, "operator.task.create", prompt="Write."))["id"]
    place = {"scope_type": "task", "scope_id": task.upper()}
    value = {"key": "custom.tone", "value": "dry", "value_type": "string"}
    made = await result(kit, "db.preference.create", **place, **value)
    assert made["scope_id"] == task
    (listed,) = (await result(kit, "db.preference.list", **place))["entries"]
    assert listed == made
    assert await result(kit, "db.preference.get", **place, key="custom.tone") == made
