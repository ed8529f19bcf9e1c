"""A large value in a filter is looked at once, not for each document."""

from typing import Any

import pytest

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.tables import metadata
from toolgate.ports.documents import Create, Filter, Operator, Query

pytestmark = pytest.mark.anyio

DOCUMENTS = 100
FIELDS = 3000


class Name(str):
    """A field's name that counts how often it is compared with others to put them in order."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other: str) -> bool:
        Name.compared += 1
        return str.__lt__(self, other)


def large() -> dict[str, Any]:
    """A map with a large one in it; less than those of all documents."""
    inside = {Name(f"b{number * 7919 % FIELDS:04}"): 0 for number in range(FIELDS)}
    return {"a": inside}


FOUND = [
    (Filter("map", Operator.GREATER, large()), DOCUMENTS),
    (Filter("map", Operator.NOT_EQUAL, large()), DOCUMENTS),
    (Filter("map", Operator.NOT_IN, [large(), 1]), DOCUMENTS),
    (Filter("maps", Operator.ARRAY_CONTAINS, large()), 0),
]


async def test_many_documents_are_compared_with_a_large_map(database_url: str) -> None:
    database = Database(database_url)
    await database.write(metadata.create_all)
    store = SqlDocuments(database, "large")
    async with database.transaction() as tx:
        await store.write(tx, *(_create(number) for number in range(DOCUMENTS)))
    Name.compared = 0
    found = [len(await store.query(Query("items", [one]))) for one, _ in FOUND]
    await database.close()
    assert found == [documents for _, documents in FOUND]
    # To sort takes about 12 comparisons a name; once for each of four filters.
    assert FIELDS < Name.compared < 4 * 30 * FIELDS


def _create(number: int) -> Create:
    inside = {"a": {"b0000": 0, "b0001": number + 1}}
    return Create("items", f"d{number:03}", {"map": inside, "maps": [inside]})
