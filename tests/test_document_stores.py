"""Documents of a pack are its own, in the place that the settings name."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.firestore.wire_server import Refusal, WireServer
from tests.gate.tools import a_tool, offer, storing
from tests.loops import one_loop

from toolgate import demo
from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.app import App
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.gate.principal import Role, of_role
from toolgate.gate.tool import Effect, NoArguments, Output, Target
from toolgate.ports.documents import Create, StoreUnavailable
from toolgate.settings import BadSettings, read_settings
from toolgate.testing import Kit, opened_kit

__all__ = ["one_loop"]

pytestmark = pytest.mark.anyio

ADMIN = {"roles": {"admin": True}}
APART = "in a database of their own"


class Done(Output):
    """An answer."""


async def do_nothing(ctx: Context[Any], args: NoArguments) -> Done:
    assert ctx.tx is not None
    return Done()


def on_tables() -> AnyTool:
    """A tool that writes tables of its pack, and no documents."""
    tool = a_tool("note", do_nothing, effect=Effect.WRITE)
    return replace(tool, writes=frozenset({Target.TABLES}))


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer() as running:
        yield running


def at(server: WireServer, **places: str) -> dict[str, str]:
    """Settings of a gate with documents in these places, all on one emulator."""
    named = {f"documents__{pack}": place for pack, place in places.items()}
    return {"google__emulator_host": server.host, **named}


async def create(kit: Kit, uid: str, record: dict[str, Any]) -> Any:
    return await kit.call("create_document", collection="users", document_id=uid, data=record)


async def roles(app: App, uid: str) -> set[str]:
    """What a person with a key of their own may do."""
    key = (await app.keys.create(role=Role.USER, user_id=uid)).key
    holder = await app.credentials.holder(key)
    assert holder is not None
    return {role.value for role in holder.roles}


async def test_a_document_of_another_pack_makes_nobody_an_admin(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        assert (await create(kit, "eve", ADMIN)).error is None
        assert await roles(kit.app, "eve") == {"user"}
        async with kit.app.gate.database.transaction() as tx:
            await kit.app.documents.of("backend").write(tx, Create("users", "root", ADMIN))
        assert await roles(kit.app, "root") == {"user", "admin"}
        hidden = await kit.call("get_document", collection="users", document_id="root")
        assert hidden.status == 404, "nor does it see the records of users"


async def test_demo_data_is_loaded_into_each_pack_that_is_empty(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        await create(kit, "mine", {"a": 1})
        with pytest.raises(demo.NotForDemo, match="Pack appdata holds documents") as refused:
            await demo.load_demo(kit.app)
        assert "backend" not in str(refused.value)
        alex = await kit.call("get_user", as_=of_role(Role.USER, "key:1", "_test-basic"))
        assert alex.body["user"]["personal"]["name"]["first"] == "Alex"


async def test_a_pack_of_another_package_has_documents_of_its_own(tmp_path: Path) -> None:
    writing = offer(a_tool("store", storing(), effect=Effect.WRITE))
    async with opened_kit(tmp_path, plugins=writing) as kit:
        assert (await kit.call("store")).error is None
        wanted = {"collection": "apps", "document_id": "stored"}
        assert (await kit.call("get_document", **wanted)).status == 404
        assert await kit.app.documents.of("orchestrator").get("apps", "stored") is not None


async def test_documents_in_firestore_leave_the_other_packs_atomic(
    tmp_path: Path, server: WireServer
) -> None:
    places = at(server, appdata="firestore://app")
    async with opened_kit(tmp_path, writes=True, plugins=offer(on_tables()), **places) as kit:
        tool = kit.app.gate.catalogue.find("note")
        assert tool is not None
        assert tool.atomic
        tried = await kit.call("note", dry_run=True)
        assert (tried.error, (await kit.call("note")).error) == (None, None)
        refused = await kit.call("create_document", dry_run=True, collection="apps", data={})
        assert refused.status == 403
        assert (await create(kit, "jane", {"email": "j@example.com"})).error is None
        rows = await kit.audit_rows()
    assert {(row["tool_name"], row["error_type"]) for row in rows} == {
        ("note", "dry_run"),
        ("note", None),
        ("create_document", "access_denied"),
        ("create_document", None),
    }
    assert [name.partition("/documents/")[2] for name in server.documents] == ["users/jane"]


async def test_documents_of_another_pack_stay_in_the_database(
    tmp_path: Path, server: WireServer
) -> None:
    writing = offer(a_tool("store", storing(), effect=Effect.WRITE))
    places = at(server, appdata="firestore://app")
    async with opened_kit(tmp_path, plugins=writing, **places) as kit:
        tried = await kit.call("store", dry_run=True)
        assert tried.error is None
        assert (await kit.call("store")).error is None
        assert await kit.app.documents.of("backend").get("users", "nobody") is None
    assert server.documents == {}
    assert server.calls == []


@pytest.mark.parametrize(
    "places",
    [
        {"url": "firestore://one"},
        {"appdata": "firestore://one", "backend": "firestore://one"},
        {"url": "firestore://one", "backend": "firestore://one/(default)"},
        {"url": "firestore://", "backend": "firestore://demo-toolgate"},
    ],
    ids=["all", "each", "default database", "project of the account"],
)
async def test_packs_in_one_firestore_database_share_documents_but_not_the_say_who_is_admin(
    tmp_path: Path, server: WireServer, places: dict[str, str]
) -> None:
    async with opened_kit(tmp_path, writes=True, **at(server, **places)) as kit:
        refused = await create(kit, "eve", ADMIN)
        assert refused.status == 403
        assert APART in refused.body["error"]
        assert await roles(kit.app, "eve") == {"user"}
        assert (await create(kit, "jane", {"email": "j@example.com"})).error is None
        shared = await kit.app.documents.of("backend").get("users", "jane")
        assert shared == {"email": "j@example.com"}
        async with kit.app.gate.database.transaction() as tx:
            await kit.app.documents.of("backend").write(tx, Create("users", "root", ADMIN))
        assert await roles(kit.app, "root") == {"user", "admin"}


@pytest.mark.parametrize(
    "places",
    [
        {"appdata": "firestore://one", "backend": "firestore://other"},
        {"appdata": "firestore://one/app", "backend": "firestore://one"},
        {"appdata": "firestore://one", "backend": "database:"},
        {"url": "firestore://one", "backend": "database:"},
    ],
    ids=["projects", "databases", "the database", "url for the rest"],
)
async def test_packs_in_two_places_have_documents_of_their_own(
    tmp_path: Path, server: WireServer, places: dict[str, str]
) -> None:
    async with opened_kit(tmp_path, writes=True, **at(server, **places)) as kit:
        assert (await create(kit, "eve", ADMIN)).error is None
        assert await kit.app.documents.of("backend").get("users", "eve") is None
        assert await roles(kit.app, "eve") == {"user"}


async def test_a_place_is_opened_checked_and_closed_once(
    tmp_path: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    check, close = FirestoreDocuments.check, FirestoreDocuments.close

    async def noted_check(self: FirestoreDocuments) -> None:
        told.append("check")
        await check(self)

    async def noted_close(self: FirestoreDocuments) -> None:
        told.append("close")
        await close(self)

    monkeypatch.setattr(FirestoreDocuments, "check", noted_check)
    monkeypatch.setattr(FirestoreDocuments, "close", noted_close)
    places = at(server, appdata="firestore://one", backend="firestore://one")
    async with opened_kit(tmp_path, **places) as kit:
        await kit.app.documents.check()
        assert told == ["check"]
        server.refusal = Refusal(grpc.StatusCode.UNAUTHENTICATED, "no")
        with pytest.raises(StoreUnavailable):
            await kit.app.documents.check()
    assert told == ["check", "check", "close"]


@pytest.mark.parametrize("value", ["firestor://p", "sql", "postgresql://h/d", "firestore://p/d/e"])
@pytest.mark.parametrize("key", ["url", "appdata", "backend"])
def test_a_place_that_is_none_is_refused_with_those_there_are(key: str, value: str) -> None:
    with pytest.raises(BadSettings, match=rf"Setting documents\.{key} must be one of: firestore:"):
        read_settings(flags={f"documents.{key}": value}, environment={})


def test_a_pack_without_documents_has_no_place_for_them() -> None:
    with pytest.raises(BadSettings, match=r"Unknown setting documents\.content"):
        read_settings(flags={"documents.content": "database:"}, environment={})


def test_the_place_of_a_pack_that_is_not_enabled_is_passed_over() -> None:
    flags = {"packs.enabled": ["content"], "documents.appdata": "firestore://p"}
    settings = read_settings(flags={**flags, "documents.backend": "firestore://q"}, environment={})
    assert settings.documents.model_dump() == {"url": None, "backend": "firestore://q"}
