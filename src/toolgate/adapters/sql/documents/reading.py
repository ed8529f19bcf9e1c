"""Reading documents by their ids, and the names of collections."""

from collections.abc import Sequence
from functools import lru_cache

from sqlalchemy import BindParameter, Connection, bindparam, select

from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions, answer
from toolgate.db.tables import documents
from toolgate.ports.documents import Fields, Reference

MAX_IDS = 512
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
    return answer(connection, ask_fields(namespace, references, for_update=for_update))


def ask_fields(
    namespace: str, references: Sequence[Reference], *, for_update: bool = False
) -> Questions[dict[Reference, Fields]]:
    """The fields of those documents that there are; locked, if they are to be changed."""
    found: dict[Reference, Fields] = {}
    ids: dict[str, list[str]] = {}
    for collection, id in references:
        ids.setdefault(collection, []).append(id)
    for collection, theirs in sorted(ids.items()):
        for first in range(0, len(theirs), MAX_IDS):
            some = theirs[first : first + MAX_IDS]
            values = {"namespace": namespace, "collection": collection, **_named(some)}
            rows = yield _with_ids(places_for(len(some)), for_update=for_update), values
            found |= {(collection, id): fields for id, fields in rows}
    return found


def places_for(values: int) -> int:
    """A power of two: so few statements serve all numbers of ids, or of keys."""
    return 1 << (values - 1).bit_length()


def _named(ids: Sequence[str]) -> dict[str, str]:
    """Ids by the names of their places in the statement; the last one takes those that are left."""
    given = dict.fromkeys(range(places_for(len(ids))), ids[-1]) | dict(enumerate(ids))
    return {f"id_{number}": id for number, id in given.items()}


@lru_cache
def _with_ids(places: int, *, for_update: bool) -> PreparedStatement:
    one_of: list[BindParameter[str]] = [bindparam(f"id_{number}") for number in range(places)]
    statement = (
        select(documents.c.id, documents.c.fields)
        .where(
            documents.c.namespace == bindparam("namespace"),
            documents.c.collection == bindparam("collection"),
            documents.c.id.in_(one_of),
        )
        .order_by(documents.c.id)  # locked in one order by everybody, or two wait for each other
    )
    return PreparedStatement(statement.with_for_update() if for_update else statement)


def ask_collections(namespace: str, above: str) -> Questions[list[str]]:
    """The names of collections right below a path, which ends with a slash; one step each."""
    names: list[str] = []
    after = above
    while rows := (yield NEXT_COLLECTION, {"namespace": namespace, "after": after}):
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
