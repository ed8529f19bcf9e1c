"""Documents from the time before namespaces find theirs, and look-ups use an index."""

import logging
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from sqlalchemy import Connection, Engine, event, insert, select, text
from sqlalchemy.exc import IntegrityError
from tests.statements import noted_driver_reads, noted_statements

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.documents.store import ONE
from toolgate.db import upgrades
from toolgate.db.engine import Database
from toolgate.db.schemas import GATE
from toolgate.db.tables import documents
from toolgate.db.upgrades import upgrade
from toolgate.identity.providers import Profile
from toolgate.identity.users import first_record
from toolgate.ports.documents import Create, Query

pytestmark = pytest.mark.anyio

BEFORE = GATE.revisions[GATE.revisions.index("0013") - 1]
ADMIN = {"admin": True, "betaTester": False, "developer": False}
JANE, ROOT, EVE = (
    first_record(Profile(uid, f"{uid}@example.com")) for uid in ("jane", "root", "eve")
)

SIGN_INS: dict[str, dict[str, Any]] = {
    "jane": JANE,
    "root": ROOT | {"roles": ADMIN},
    "further": first_record(Profile("further")) | {"team": "blue"},
}
OF_TOOLS: dict[str, dict[str, Any]] = {
    "abc123": {"email": "jane@example.com", "isAdmin": False},
    "bare": {"roles": {"admin": True}},
    "odd": {"roles": ["admin"], "auth": "x"},
    "of-somebody-else": EVE | {"roles": ADMIN},
    "no-client-id": first_record(Profile("no-client-id")) | {"api": {}, "roles": ADMIN},
    "odd-client-id": first_record(Profile("odd-client-id")) | {"api": {"clientId": 5}},
    "a-part": {name: value for name, value in JANE.items() if name != "subscription"},
}


def old_data(connection: Connection) -> None:
    command.upgrade(upgrades._config(connection, GATE), BEFORE)
    both = SIGN_INS | OF_TOOLS
    rows = [{"collection": "users", "id": uid, "fields": record} for uid, record in both.items()]
    rows.append({"collection": "apps", "id": "jane", "fields": JANE})
    rows.append({"collection": "users/jane/notes", "id": "jane", "fields": JANE})
    old = sa.table(
        "documents", sa.column("collection"), sa.column("id"), sa.column("fields", sa.JSON)
    )
    connection.execute(sa.insert(old), rows)


async def upgraded(url: str) -> Database:
    database = Database(url)
    await database.write(old_data)
    await upgrade(database)
    return database


async def test_records_of_sign_ins_move_and_everything_else_stays(database_url: str) -> None:
    database = await upgraded(database_url)
    every = select(
        documents.c.namespace, documents.c.collection, documents.c.id, documents.c.fields
    )
    found = await database.read(lambda c: c.execute(every.order_by(documents.c.seq)).all())
    await database.close()
    users = {row.id: row.namespace for row in found if row.collection == "users"}
    assert users == dict.fromkeys(SIGN_INS, "backend") | dict.fromkeys(OF_TOOLS, "appdata")
    others = [(row.namespace, row.collection) for row in found if row.collection != "users"]
    assert others == [("appdata", "apps"), ("appdata", "users/jane/notes")]
    assert [row.fields for row in found][: len(users)] == [*SIGN_INS.values(), *OF_TOOLS.values()]


async def test_the_log_says_who_stays_an_admin_and_who_does_not(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await (await upgraded(database_url)).close()
    told = [one for one in caplog.messages if "admin" in one]
    stays = "stays an admin: the record of a sign-in says so."
    assert [one for one in told if stays in one] == [f"User root {stays}"]
    ended = {one.split()[1] for one in told if "is no admin any more" in one}
    assert ended == {"bare", "of-somebody-else", "no-client-id"}


async def test_what_is_stored_later_comes_later(database_url: str) -> None:
    database = await upgraded(database_url)
    store = SqlDocuments(database, "appdata")
    async with database.transaction() as tx:
        await store.write(tx, Create("users", "newest", {}))
    stored = await store.query(Query("users"))
    assert [one.id for one in stored] == sorted([*OF_TOOLS, "newest"])
    await database.close()


async def test_an_id_is_taken_in_one_namespace_alone(database_url: str) -> None:
    database = Database(database_url)
    await upgrade(database)
    row = {"namespace": "a", "collection": "users", "id": "u", "fields": {}}
    for namespace in ("a", "b"):
        new = row | {"namespace": namespace}
        await database.write(lambda c, new=new: c.execute(insert(documents), [new]))
    with pytest.raises(IntegrityError):
        await database.write(lambda c: c.execute(insert(documents), [row]))
    with pytest.raises(IntegrityError):
        await database.write(lambda c: c.execute(insert(documents), [row | {"namespace": None}]))
    await database.close()


def fill(connection: Connection) -> None:
    rows = [
        {"namespace": namespace, "collection": collection, "id": f"{number:04}", "fields": {}}
        for namespace in ("appdata", "backend", "network")
        for collection in ("users", "groups", "tasks")
        for number in range(500)
    ]
    connection.execute(insert(documents), rows)
    connection.execute(text("ANALYZE"))


def explained(connection: Connection, statement: str, values: Any) -> str:
    word = "EXPLAIN" if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
    return "\n".join(str(row) for row in connection.exec_driver_sql(f"{word} {statement}", values))


async def test_a_look_up_is_one_statement_on_the_index_of_its_namespace(database_url: str) -> None:
    database = Database(database_url)
    await upgrade(database)
    await database.write(fill)
    with noted_statements() as statements:
        assert await SqlDocuments(database, "backend").get("users", "0400") == {}
    assert len(statements) == 1
    wanted = ONE.statement.params(namespace="backend", collection="users", id="0400")

    def explain(connection: Connection) -> str:
        written = wanted.compile(connection, compile_kwargs={"literal_binds": True})
        return explained(connection, str(written), ())

    told = await database.read(explain)
    if database.dialect == "postgresql":
        assert "Index Scan using uq_documents_namespace_collection_id" in told
    else:  # SQLite names the index of a constraint by itself
        assert "INDEX sqlite_autoindex_documents" in told
        assert "(namespace=? AND collection=? AND id=?)" in told
    await database.close()


async def test_a_query_reads_its_collection_in_order_from_an_index(database_url: str) -> None:
    database = Database(database_url, prepared=False)  # so that SQLAlchemy runs what is asked
    await upgrade(database)
    await database.write(fill)
    noted: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, values: Any, *_: Any) -> None:
        noted.append((statement, values))

    event.listen(Engine, "before_cursor_execute", note)
    try:
        with noted_driver_reads(lambda *read: noted.append(read)):
            found = await SqlDocuments(database, "network").query(Query("groups", limit=20))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert [one.id for one in found] == [f"{number:04}" for number in range(20)]
    [(statement, values)] = [one for one in noted if "FROM documents" in one[0]]
    told = await database.read(lambda connection: explained(connection, statement, values))
    index = "uq_documents_namespace_collection_id"
    assert (index if database.dialect == "postgresql" else "sqlite_autoindex_documents") in told
    assert "sort" not in told.lower()
    assert "temp" not in told.lower()
    await database.close()
