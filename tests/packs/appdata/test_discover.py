"""`toolgate appdata discover` proposes a file that can be used as it is."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.firestore.wire_server import WireServer

from toolgate.db.engine import Database
from toolgate.packs.appdata import commands
from toolgate.packs.appdata.collections import parse
from toolgate.packs.appdata.discovery import propose, type_of
from toolgate.ports.documents import Create, DocumentStore, Fields
from toolgate.testing import opened_kit
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio

ODD = 'odd "key"\n\x7f\x9b=日本'


async def store_of(**collections: list[Fields]) -> MemoryDocuments:
    store = MemoryDocuments()
    async with Database("sqlite://").transaction() as tx:
        for name, documents in collections.items():
            new = [Create(name, f"d{number}", one) for number, one in enumerate(documents)]
            await store.write(tx, *new)
    return store


async def text_of(store: DocumentStore, limit: int = 20) -> str:
    return await propose(store, limit, lambda _done, _total: None)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("a", "string"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        (None, "null"),
        ({"a": 1}, "object"),
        ([], "unknown[]"),
        (["a", "b"], "string[]"),
        (["a", 1], "(string | number)[]"),
        ([{"a": 1}], "object[]"),
    ],
)
def test_types_are_those_of_typescript(value: Any, type_: str) -> None:
    assert type_of(value) == type_


async def test_a_proposal_names_fields_and_types_but_no_values_and_nothing_is_writable() -> None:
    orders: list[Fields] = [
        {"total": 5, "note": "secret"},
        {"total": "5", "note": None},
        {"total": 6},
    ]
    text = await text_of(await store_of(orders=orders, empty=[]))
    found = parse(text)
    assert list(found.by_name) == ["orders"]
    assert found.writable == []
    assert [(one.name, one.type, one.description) for one in found.by_name["orders"].fields] == [
        ("id", "string", "The document's id"),
        ("total", "number | string", "Mixed types: number in 2, string in 1"),
        ("note", "string | null", ""),
    ]
    assert "# in 2 of 3 documents" in text
    assert "secret" not in text


async def test_only_the_first_documents_are_looked_at() -> None:
    store = await store_of(orders=[{"a": 1}, {"a": 1}, {"b": 1}])
    fields = parse(await text_of(store, limit=2)).by_name["orders"].fields
    assert [one.name for one in fields] == ["id", "a"]


async def test_odd_names_survive_the_round_trip_and_move_no_cursor() -> None:
    text = await text_of(await store_of(**{ODD: [{ODD: 1, "": 2, "id": 3, "a.b": 4}]}))
    assert all(line.isprintable() for line in text.splitlines())
    collection = parse(text).by_name[ODD]
    assert [one.name for one in collection.fields] == ["id", ODD, "a.b"]


async def test_documents_in_firestore_are_found(tmp_path: Path) -> None:
    async with WireServer() as server:
        settings = {"documents__url": "firestore://demo", "google__emulator_host": server.host}
        async with opened_kit(tmp_path, writes=True, **settings) as kit:
            data = {"name": "Hub", "features": ["a"]}
            made = await kit.call("create_document", collection="apps", data=data)
            assert made.error is None
            text = await text_of(kit.app.worlds["appdata"].world.documents)
    types = {one.name: one.type for one in parse(text).by_name["apps"].fields}
    assert types == {"id": "string", "name": "string", "features": "string[]"}


@pytest.fixture
def filled(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command line, in a folder with two documents."""
    monkeypatch.setenv("MCP_ENABLE_WRITES", "true")
    assert cli("db", "upgrade").code == 0
    for user in ("a", "b"):
        data = f'{{"collection":"users","document_id":"{user}","data":{{"name":"Jo"}}}}'
        assert cli("call", "create_document", "--json", data).code == 0
    return cli


def test_what_is_proposed_can_be_served_as_it_is(
    filled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_APPDATA__COLLECTIONS", "own.toml")
    made = filled("appdata", "discover", "--file", "own.toml")
    said = "Done: own.toml is written. Edit it, and set appdata.collections to it.\n"
    assert (made.code, made.out, made.err) == (0, said, "")
    listed = filled("call", "list_collections").json["collections"]
    assert [(one["name"], one["field_count"]) for one in listed] == [("users", 2)]
    read = filled("call", "get_document", "collection=users", "document_id=a")
    assert read.json == {"id": "a", "name": "Jo"}
    refused = filled(
        "call", "create_document", "--json", '{"collection":"users","data":{"name":"Al"}}'
    )
    assert refused.code == 2
    assert "read-only (writable collections: none)" in refused.out + refused.err
    printed = filled("appdata", "discover").out
    assert printed == (tmp_path / "own.toml").read_text(encoding="utf-8")
    assert tomllib.loads(printed)["collections"].keys() == {"users"}


def test_a_file_that_is_there_is_not_overwritten(filled: Any, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("mine")
    refused = filled("appdata", "discover", "--file", "own.toml")
    assert (refused.code, "own.toml is there already" in refused.err) == (2, True)
    assert (tmp_path / "own.toml").read_text() == "mine"


def test_without_documents_there_is_nothing_to_propose(cli: Any) -> None:
    assert cli("appdata", "discover").code == 2
    assert cli("db", "upgrade").code == 0
    ended = cli("appdata", "discover")
    assert (ended.code, ended.out) == (1, "")
    assert "There are no documents" in ended.err


def test_a_person_who_waits_sees_how_far_it_is(
    filled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ended = filled("appdata", "discover")
    assert "Collections" in ended.err
    assert ended.out.startswith("# Proposed by")
