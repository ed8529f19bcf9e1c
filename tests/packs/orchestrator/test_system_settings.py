"""System settings: compared before they are changed, bounded in pages, kept in a history."""

from collections import Counter
from typing import Any

import anyio
import pytest
from sqlalchemy import Connection, select
from tests.packs.orchestrator.calls import PM, refused, result

from toolgate.packs.orchestrator.sql.records import SqlRecords
from toolgate.packs.orchestrator.sql.tables import history
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

KEY = "models.cache.max_bytes"
VALUES: dict[str, Any] = {
    "string": "x",
    "number": 1.5,
    "boolean": True,
    "object": {"a": [1]},
    "array": [1, "b", None],
}


def new(key: str, value: Any = 1, value_type: str = "number", **more: Any) -> dict[str, Any]:
    return {"key": key, "value": value, "value_type": value_type, **more}


async def keys(kit: Kit, **arguments: Any) -> list[str]:
    """The keys of every page."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await result(kit, "db.system_setting.list", **arguments, **cursor)
        found += [one["key"] for one in page["entries"]]
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def test_a_setting_is_created_read_changed_and_deleted(kit: Kit) -> None:
    made = await result(kit, "db.system_setting.create", **new("a.b", reason="first"))
    assert {name: made[name] for name in ("key", "value", "value_type", "version")} == {
        "key": "a.b",
        "value": 1,
        "value_type": "number",
        "version": 1,
    }
    assert made["updated_by"] == "test-admin"
    assert await result(kit, "db.system_setting.get", key="a.b") == made
    changed = await result(kit, "db.system_setting.update", **new("a.b", "two", "string"))
    assert (changed["version"], changed["value"]) == (2, "two")
    assert await result(kit, "db.system_setting.delete", key="a.b") == {}
    gone = await refused(kit, "db.system_setting.get", key="a.b")
    assert gone == {"type": "not_found", "message": "There is no system setting a.b."}


async def test_the_history_has_old_new_by_and_reason(kit: Kit) -> None:
    await result(kit, "db.system_setting.create", **new("a.b", 1, reason="first"))
    await result(kit, "db.system_setting.update", **new("a.b", 2, reason="second"))
    await result(kit, "db.system_setting.delete", key="a.b", reason="third")
    rows = await kit.app.gate.database.read(
        lambda one: one.execute(select(history).order_by(history.c.seq)).all()
    )
    assert [(row.version, row.old, row.new, row.changed_by, row.reason) for row in rows] == [
        (1, None, "1", "test-admin", "first"),
        (2, "1", "2", "test-admin", "second"),
        (3, "2", None, "test-admin", "third"),
    ]


async def test_what_exists_is_not_created_again(kit: Kit) -> None:
    error = await refused(kit, "db.system_setting.create", **new(KEY))
    assert error["type"] == "conflict"
    assert error["details"] == {"current_version": 1}


@pytest.mark.parametrize("tool", ["db.system_setting.update", "db.system_setting.delete"])
async def test_another_version_is_a_conflict_that_names_the_current_one(
    kit: Kit, tool: str
) -> None:
    arguments = new(KEY) if tool.endswith("update") else {"key": KEY}
    error = await refused(kit, tool, **arguments, expected_version=7)
    assert error["type"] == "conflict"
    assert error["message"].startswith("version conflict")
    assert error["details"] == {"current_version": 1}
    assert (await result(kit, "db.system_setting.get", key=KEY))["value"] == 107374182400


async def test_what_is_not_there_is_not_changed_into_being(kit: Kit) -> None:
    error = await refused(kit, "db.system_setting.update", **new("no.such"))
    assert error["type"] == "not_found"
    assert (await refused(kit, "db.system_setting.delete", key="no.such"))["type"] == "not_found"
    assert (await refused(kit, "db.system_setting.get", key="no.such"))["type"] == "not_found"


async def test_a_key_that_is_created_again_never_takes_an_old_version(kit: Kit) -> None:
    await result(kit, "db.system_setting.create", **new("a.b", 1))
    await result(kit, "db.system_setting.delete", key="a.b", expected_version=1)
    again = await result(kit, "db.system_setting.create", **new("a.b", 5))
    assert again["version"] > 2
    error = await refused(kit, "db.system_setting.update", **new("a.b", 9, expected_version=1))
    assert error["details"] == {"current_version": again["version"]}


@pytest.mark.parametrize("value_type", VALUES)
@pytest.mark.parametrize("given", [*VALUES, "null"])
async def test_a_value_is_of_its_type_and_no_other(kit: Kit, given: str, value_type: str) -> None:
    arguments = new("a.b", VALUES.get(given), value_type)
    if given == value_type:
        made = await result(kit, "db.system_setting.create", **arguments)
        assert made["value"] == VALUES[given]
    else:
        error = await refused(kit, "db.system_setting.create", **arguments)
        assert error["type"] == "invalid_arguments"
        assert f"must be of value_type {value_type}; it is {given}" in error["message"]


@pytest.mark.parametrize(
    "key", ["", "A.b", "a..b", ".a", "a.", "a b", "a/b", "é", "a\x00", "x" * 257, "-a", "a.b-"]
)
async def test_keys_have_a_form(kit: Kit, key: str) -> None:
    error = await refused(kit, "db.system_setting.create", **new(key))
    assert error["type"] == "invalid_arguments"
    assert "key" in error["details"]["fields"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a.b", "sk_live_" + "a1" * 12),
        ("a.b", {"deep": ["ghp_" + "a" * 36]}),
        ("a.b", "-----BEGIN RSA PRIVATE KEY-----"),
        ("a.b", "postgresql://u:hunter22@db/x"),
        ("mail.password", "hunter22"),
        ("a.b", {"api_key": "0123"}),
    ],
    ids=["stripe", "github", "private-key", "url", "name", "inner-name"],
)
async def test_secrets_in_plain_text_are_refused(kit: Kit, key: str, value: Any) -> None:
    value_type = "string" if isinstance(value, str) else "object"
    error = await refused(kit, "db.system_setting.create", **new(key, value, value_type))
    assert error["type"] == "invalid_arguments"
    assert "secret store" in error["message"]
    assert "hunter22" not in str(error)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mail.password", "env:MAIL_PASSWORD"),
        ("a.token_limit", "4000"),
        ("a.b", "https://example.com/a:b@c"),
        ("docs.text", "Ask for the password politely."),
    ],
    ids=["reference", "limit", "url", "prose"],
)
async def test_honest_values_are_no_secrets(kit: Kit, key: str, value: str) -> None:
    assert await result(kit, "db.system_setting.create", **new(key, value, "string"))


@pytest.mark.parametrize("key", ["mcp.tools.disabled", "agents.x", "security.y", "access.z"])
async def test_an_agent_does_not_open_its_own_gate(kit: Kit, key: str) -> None:
    value = new(key, [], "array")
    for tool, arguments in {
        "db.system_setting.create": value,
        "db.system_setting.update": value,
        "db.system_setting.delete": {"key": key},
    }.items():
        error = await refused(kit, tool, PM, **arguments)
        assert error["type"] == "access_denied"
        assert "admin" in error["message"]
    assert await result(kit, "db.system_setting.create", PM, **new("models.x"))


async def test_a_prefix_is_compared_letter_by_letter(kit: Kit) -> None:
    for key in ("a.b_c", "a.bxc", "a.b", "a.c", "b"):
        await result(kit, "db.system_setting.create", **new(key))
    assert await keys(kit, key_prefix="a.b_") == ["a.b_c"]
    assert await keys(kit, key_prefix="a.") == ["a.b", "a.b_c", "a.bxc", "a.c"]


async def test_pages_hold_under_inserts_and_deletes(kit: Kit) -> None:
    for letter in "bdfh":
        await result(kit, "db.system_setting.create", **new(f"k.{letter}"))
    first = await result(kit, "db.system_setting.list", key_prefix="k.", limit=2)
    assert [one["key"] for one in first["entries"]] == ["k.b", "k.d"]
    await result(kit, "db.system_setting.create", **new("k.a"))
    await result(kit, "db.system_setting.create", **new("k.e"))
    await result(kit, "db.system_setting.delete", key="k.d")
    rest = await result(kit, "db.system_setting.list", key_prefix="k.", cursor=first["next_cursor"])
    assert [one["key"] for one in rest["entries"]] == ["k.e", "k.f", "k.h"]
    assert "next_cursor" not in rest


async def test_large_values_make_a_page_shorter(kit: Kit) -> None:
    large = "x" * 400_000
    for number in range(5):
        await result(kit, "db.system_setting.create", **new(f"k.n{number}", large, "string"))
    page = await result(kit, "db.system_setting.list", key_prefix="k.")
    assert [one["key"] for one in page["entries"]] == ["k.n0", "k.n1", "k.n2"]
    assert await keys(kit, key_prefix="k.") == [f"k.n{number}" for number in range(5)]


async def test_a_value_over_a_mebibyte_is_refused(kit: Kit) -> None:
    fits = "x" * (1024 * 1024 - 2)
    assert await result(kit, "db.system_setting.create", **new("a.fits", fits, "string"))
    error = await refused(kit, "db.system_setting.create", **new("a.b", fits + "x", "string"))
    assert "1048577 bytes" in error["message"]
    assert error["type"] == "size_limit_exceeded", "like an artifact that is too large"
    page = await result(kit, "db.system_setting.list", key_prefix="a.")
    assert len(page["entries"]) == 1


async def test_a_cursor_of_another_list_or_a_changed_one_is_refused(kit: Kit) -> None:
    for letter in "abc":
        await result(kit, "db.system_setting.create", **new(f"k.{letter}"))
    page = await result(kit, "db.system_setting.list", key_prefix="k.", limit=1)
    cursor: str = page["next_cursor"]
    changed = cursor[:-2] + ("A" if cursor[-2] != "A" else "B") + cursor[-1]
    for arguments in (
        {"cursor": cursor},
        {"cursor": cursor, "key_prefix": "k"},
        {"cursor": changed, "key_prefix": "k."},
        {"cursor": "k.a", "key_prefix": "k."},
        {"cursor": "é", "key_prefix": "k."},
    ):
        error = await refused(kit, "db.system_setting.list", **arguments)
        assert error["type"] == "invalid_arguments"
        assert "cursor is not one" in error["message"]


@pytest.mark.parametrize("limit", [0, 201, -1, 10**9])
async def test_a_limit_has_its_range(kit: Kit, limit: int) -> None:
    assert (await refused(kit, "db.system_setting.list", limit=limit))["type"] == (
        "invalid_arguments"
    )


async def test_of_many_creates_at_once_one_wins(kit: Kit) -> None:
    ends: Counter[str] = Counter()

    async def create(value: int) -> None:
        outcome = await kit.call("db.system_setting.create", **new("race.key", value))
        ends[outcome.error_type or "success"] += 1
        if outcome.error is not None:
            assert outcome.body["error"]["details"] == {"current_version": 1}

    async with anyio.create_task_group() as tasks:
        for value in range(50):
            tasks.start_soon(create, value)
    assert ends == {"success": 1, "conflict": 49}


@pytest.mark.parametrize("deleted", [False, True], ids=["there", "deleted"])
async def test_who_is_second_by_a_moment_is_told_the_version(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    await result(kit, "db.system_setting.create", **new("race.key", 1))
    if deleted:
        await result(kit, "db.system_setting.delete", key="race.key")
    look, looks = SqlRecords._locked, list[int]()

    def look_too_early(self: SqlRecords, connection: Connection, place: Any, key: str) -> Any:
        looks.append(1)
        # SQLite has one writer at a time, so nobody looks too early there.
        early = len(looks) == 1 and connection.dialect.name == "postgresql"
        return None if early else look(self, connection, place, key)

    monkeypatch.setattr(SqlRecords, "_locked", look_too_early)
    outcome = await kit.call("db.system_setting.create", **new("race.key", 2))
    if deleted:
        if kit.app.gate.database.dialect == "postgresql":  # there is no version to tell
            told = "version conflict: it was changed just now. Read it again."
            assert outcome.body["error"] == {"type": "conflict", "message": told}
            outcome = await kit.call("db.system_setting.create", **new("race.key", 2))
        assert outcome.body["result"]["version"] == 3
    else:
        assert outcome.body["error"] == {
            "type": "conflict",
            "message": "race.key exists already, with version 1. Update it instead.",
            "details": {"current_version": 1},
        }


async def test_of_many_updates_of_one_version_one_wins(kit: Kit) -> None:
    won: Counter[int] = Counter()

    async def climb(_: int) -> None:
        for version in range(1, 21):
            outcome = await kit.call(
                "db.system_setting.update", **new(KEY, version, expected_version=version)
            )
            if outcome.error is None:
                won[version] += 1

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(climb, number)
    newest = await result(kit, "db.system_setting.get", key=KEY)
    assert set(won.values()) == {1}
    assert newest["version"] == len(won) + 1
