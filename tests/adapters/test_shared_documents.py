"""A pack whose documents lie beside the records of users says of nobody that they are an admin."""

from typing import Any

import pytest

from toolgate.adapters.shared_documents import SharedDocuments
from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Forbidden
from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentStore,
    DocumentTransaction,
    Merge,
    Query,
    Set,
    Update,
    Write,
)
from toolgate.ports.transforms import ArrayUnion, DeleteField, Increment, ServerTimestamp
from toolgate.testing.documents import MemoryDocuments

pytestmark = pytest.mark.anyio

JANE = {"name": "Jane", "roles": {"admin": False}}
GIVING = [
    Create("users", "eve", {"roles": {"admin": True}}),
    Create("users", "eve", {"name": "Eve", "roles": None}),
    Set("users", "jane", {"roles": {"admin": True}}),
    Set("users", "jane", {"roles": {}}),
    Merge("users", "jane", {"roles": {"admin": True}}),
    Merge("users", "jane", {"roles": {"admin": DeleteField()}}),
    Merge("users", "jane", {"roles": DeleteField()}),
    Merge("users", "jane", {"roles": ArrayUnion(["admin"])}),
    Update("users", "jane", {"roles": {"admin": True}}),
    Update("users", "jane", {"roles.admin": True}),
    Update("users", "jane", {"name": "J", "roles.admin": True}),
    Update("users", "jane", {"roles.admin": Increment(1)}),
    Update("users", "jane", {"roles.admin.since": ServerTimestamp()}),
    Update("users", "jane", {"roles": DeleteField()}),
]
HARMLESS = [
    Create("users", "eve", {"name": "Eve", "team": {"roles": {"admin": True}}}),
    Set("users", "joe", {"name": "Joe"}),
    Merge("users", "jane", {"name": "J", "more": {"roles": ["admin"]}}),
    Update(
        "users", "jane", {"team.roles": {"admin": True}, "roles2": True, "visits": Increment(1)}
    ),
    Update("people", "jane", {"roles.admin": True}),
    Create("users/jane/permissions", "p", {"roles": {"admin": True}}),
    Delete("users", "absent"),
]


@pytest.fixture
async def store(tx: Transaction) -> MemoryDocuments:
    documents = MemoryDocuments()
    await documents.write(tx, Create("users", "jane", JANE), Create("people", "jane", {}))
    return documents


@pytest.fixture
def tx() -> Transaction:
    """Never begins: documents in memory join none."""
    return Database("sqlite://").transaction()


async def everything(store: DocumentStore) -> dict[str, Any]:
    names = ["users", "people", "users/jane/permissions"]
    return {name: list(await store.query(Query(name))) for name in names}


@pytest.mark.parametrize("write", GIVING, ids=str)
async def test_roles_of_users_are_not_written_in_any_spelling(
    store: MemoryDocuments, tx: Transaction, write: Write
) -> None:
    shared: DocumentStore = SharedDocuments(store)
    before = await everything(store)
    with pytest.raises(Forbidden, match="decides who is an admin"):
        await shared.write(tx, write)
    with pytest.raises(Forbidden, match="decides who is an admin"):
        await shared.write(tx, Set("people", "joe", {}), write)

    async def work(transaction: DocumentTransaction) -> None:
        transaction.write(Set("people", "joe", {}))
        transaction.write(write)

    with pytest.raises(Forbidden, match="decides who is an admin"):
        await shared.transact(tx, work)
    assert await everything(store) == before, "nothing is stored, not even what is harmless"


@pytest.mark.parametrize("write", HARMLESS, ids=str)
async def test_other_fields_and_other_collections_are_written(
    store: MemoryDocuments, tx: Transaction, write: Write
) -> None:
    plain = MemoryDocuments()
    await plain.write(tx, Create("users", "jane", JANE), Create("people", "jane", {}), write)
    shared = SharedDocuments(store)
    await shared.write(tx, write)
    assert await everything(store) == await everything(plain)


async def test_work_reads_and_writes_as_on_the_store_itself(
    store: MemoryDocuments, tx: Transaction
) -> None:
    shared = SharedDocuments(store)

    async def work(transaction: DocumentTransaction) -> int:
        jane = await transaction.get("users", "jane")
        [same] = await transaction.get_many([("users", "jane")])
        found = await transaction.query(Query("users"))
        assert jane == same == found[0].fields == JANE
        transaction.write(Update("users", "jane", {"name": "J"}))
        return len(found)

    assert await shared.transact(tx, work) == 1
    assert await shared.get("users", "jane") == {**JANE, "name": "J"}
    assert list(await shared.collections()) == ["people", "users"]
    assert list(await shared.get_many([("users", "absent")])) == [None]
    assert shared.joins_transaction is False


async def test_a_whole_document_takes_rights_away_but_gives_none(
    store: MemoryDocuments, tx: Transaction
) -> None:
    shared = SharedDocuments(store)
    await shared.write(tx, Set("users", "jane", {"name": "Jane"}))
    assert await store.get("users", "jane") == {"name": "Jane"}
    await shared.write(tx, Delete("users", "jane"))
    assert await store.get("users", "jane") is None
