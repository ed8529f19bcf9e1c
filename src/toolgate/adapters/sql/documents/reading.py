"""Reading documents by their ids, and the names of collections."""

from collections.abc import Sequence

from sqlalchemy import Connection, Select, bindparam, select

from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import documents
from toolgate.ports.documents import Fields, Reference

MAX_IDS = 500
"""Ids in one question: databases have a limit."""
NEXT_COLLECTION = PreparedStatement(
    select(documents.c.collection)
    .where(
        documents.c.namespace == bindparam("namespace"),
        documents.c.collection > bindparam("after"),
    )
    .order_by(documents.c.collection)
    .limit(1)
)


def fields_of(
    connection: Connection,
    namespace: str,
    references: Sequence[Reference],
    *,
    for_update: bool = False,
) -> dict[Reference, Fields]:
    """The fields of those documents that there are; locked, if they are to be changed."""
    found: dict[Reference, Fields] = {}
    ids: dict[str, list[str]] = {}
    for collection, id in references:
        ids.setdefault(collection, []).append(id)
    for collection, theirs in sorted(ids.items()):
        for first in range(0, len(theirs), MAX_IDS):
            some = _with_ids(namespace, collection, theirs[first : first + MAX_IDS])
            if for_update:
                some = some.with_for_update()
            found |= {(collection, row.id): row.fields for row in connection.execute(some)}
    return found


def _with_ids(namespace: str, collection: str, ids: Sequence[str]) -> Select[str, Fields]:
    return (
        select(documents.c.id, documents.c.fields)
        .where(
            documents.c.namespace == namespace,
            documents.c.collection == collection,
            documents.c.id.in_(sorted(ids)),
        )
        .order_by(documents.c.id)  # locked in one order by everybody, or two wait for each other
    )


def collection_names(connection: Connection, namespace: str, above: str) -> list[str]:
    """The names of collections right below a path, which ends with a slash; one step each."""
    names: list[str] = []
    after = above
    while rows := NEXT_COLLECTION.rows(connection, {"namespace": namespace, "after": after}):
        path = str(rows[0][0])
        if not path.startswith(above):
            break
        name, nested, _ = path.removeprefix(above).partition("/")
        if nested:
            after = f"{above}{name}/\U0010ffff"  # past all that is below
        else:
            names.append(name)
            after = path
    return names
