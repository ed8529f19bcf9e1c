"""Documents and leaves that are loaded in bulk are what the adapters would have written."""

from pathlib import Path

import pytest
from bench import store_data
from bench.store_data import COLLECTION, FOUND, NAMESPACE
from sqlalchemy import delete, select
from tests.databases import upgrade_all

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.adapters.sql.tree import SqlTree
from toolgate.db.engine import Database
from toolgate.db.tables import document_index, documents, tree_nodes
from toolgate.ports.documents import Create, Filter, Operator, Query
from toolgate.ports.tree import SetValue

pytestmark = pytest.mark.anyio
COUNT = 2 * FOUND
DOCUMENTS = select(
    documents.c.namespace, documents.c.collection, documents.c.id, documents.c.fields
)
STORED = (DOCUMENTS, select(document_index), select(tree_nodes))


def rows(connection):
    return [sorted(connection.execute(one).all(), key=str) for one in STORED]


def empty(connection):
    for table in (documents, document_index, tree_nodes):
        connection.execute(delete(table))


async def test_bulk_rows_are_those_of_the_adapters(database_url):
    database = Database(database_url)
    await upgrade_all(database)
    if database.dialect == "sqlite":
        store_data.fill_sqlite(Path(database.url.database), COUNT)
    else:
        store_data.fill_postgres(database_url, COUNT)
    loaded = await database.read(rows)
    assert [len(one) for one in loaded] == [COUNT, 5 * COUNT, COUNT]
    await database.write(empty)
    store, tree = SqlDocuments(database, NAMESPACE), SqlTree(database, NAMESPACE)
    async with database.transaction() as tx:
        for _, _, id, fields in loaded[0]:
            await store.write(tx, Create(COLLECTION, id, fields))
        for number in range(COUNT):
            await tree.write(tx, SetValue(store_data.leaf(number), number))
    assert await database.read(rows) == loaded
    wanted = Filter("userId", Operator.EQUAL, store_data.user(COUNT - 1, COUNT))
    assert len(await store.query(Query(COLLECTION, [wanted]))) == FOUND
    await database.close()
