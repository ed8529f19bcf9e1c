"""What lies in a database after its server has ended, against what its writers were told."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, make_url, select, text
from tests.faults.kills import ledger
from tests.faults.kills.writers import PROJECT, WRITING, Path, Write

from toolgate import packs
from toolgate.adapters.sql.documents.index import CollectionIndex
from toolgate.db.changes import DOCUMENTS, RECORDS
from toolgate.db.engine import Database
from toolgate.db.tables import audit, changes, document_index, documents
from toolgate.gate.verification import Verdict, verify

T = TypeVar("T")
Fields = dict[str, Any]
StoredRow = Any
"""A row of a table, with its columns as attributes."""
SHOWN = 5
"""How many of what is wrong are told."""


@dataclass(frozen=True)
class Stored:
    """Everything that writes leave, read while nobody writes."""

    rows: Sequence[StoredRow]
    """Audit rows of writes that are stored."""
    changes: Sequence[StoredRow]
    """In the order of their numbers."""
    documents: dict[Path, Fields]
    entries: Counter[tuple[int, bytes, str]]
    projects: dict[str, Path]
    """By their slugs, which are the names of the writes that made them."""


def stored_in(url: str) -> Stored:
    drivername = "sqlite" if url.startswith("sqlite") else "postgresql+psycopg"
    engine = create_engine(make_url(url).set(drivername=drivername))
    try:
        with engine.connect() as connection:
            return _read(connection)
    finally:
        engine.dispose()


def _read(connection: Connection) -> Stored:
    written = select(audit.c.id, audit.c.request_id, audit.c.tool_name).where(
        audit.c.tool_name.in_(WRITING), audit.c.status == "success"
    )
    made = text("SELECT slug, id FROM orchestrator_projects WHERE default_of IS NULL")
    projects: Sequence[StoredRow] = (
        connection.execute(made).all() if "orchestrator" in packs.SHIPPED else []
    )
    return Stored(
        rows=connection.execute(written).all(),
        changes=connection.execute(select(changes).order_by(changes.c.seq)).all(),
        documents={
            (one.namespace, f"{one.collection}/{one.id}"): one.fields
            for one in connection.execute(select(documents))
        },
        entries=Counter(
            (one.field, bytes(one.key), one.id)
            for one in connection.execute(select(document_index))
        ),
        projects={one.slug: ("orchestrator", f"projects/{one.id}") for one in projects},
    )


async def verdict_on(url: str) -> Verdict:
    database = Database(url)
    try:
        return await verify(database)
    finally:
        await database.close()


def check_all(stored: Stored, writes: Sequence[Write]) -> int:
    """Nothing is lost, doubled, or stored by halves; how many writes are stored."""
    by_name = _audited(stored, writes)
    _check_answers(by_name, writes)
    _check_calls(stored, by_name, writes)
    _check_states(stored, writes)
    _check_index(stored)
    _check_projects(stored, by_name, writes)
    return len(by_name)


def _audited(stored: Stored, writes: Sequence[Write]) -> dict[str, StoredRow]:
    """The one audit row of each write that is stored, by the write's name."""
    by_request = {request: write for write in writes for request in write.tried}
    strange = [row for row in stored.rows if row.request_id not in by_request]
    none_of(strange, "audit rows of requests that nobody sent")
    named = [(by_request[row.request_id].name, row) for row in stored.rows]
    twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    none_of(twice, "writes that were done twice")
    other = [row for _, row in named if row.tool_name != by_request[row.request_id].tool]
    none_of(other, "audit rows of another tool")
    return dict(named)


def _check_answers(by_name: dict[str, StoredRow], writes: Sequence[Write]) -> None:
    """What was acknowledged is there, and what was refused is not."""
    request_of = {name: row.request_id for name, row in by_name.items()}
    sure = [(one, request_of.get(one.name)) for one in writes]
    lost = [one for one, request in sure if one.acknowledged and request != one.acknowledged]
    none_of(lost, "acknowledged writes that are not there")
    untrue = [one for one, request in sure if one.taken and request not in one.tried[:-1]]
    none_of(untrue, "writes that are not there and were said to be")
    none_of(
        [one for one, request in sure if request in one.refused],
        "writes that are there and were refused",
    )


def _check_calls(stored: Stored, by_name: dict[str, StoredRow], writes: Sequence[Write]) -> None:
    """Every call that is stored has its changes, all of them; and every change its call."""
    paths_of: dict[str | None, list[Path]] = defaultdict(list)
    for change in stored.changes:
        paths_of[change.call].append((change.namespace, change.path))
    calls = {row.id for row in by_name.values()}
    none_of([call for call in paths_of if call not in calls], "changes without an audit row")
    halves = [
        (one.name, paths_of[row.id])
        for one in writes
        if (row := by_name.get(one.name))
        and sorted(paths_of[row.id]) != _paths(one, stored.projects)
    ]
    none_of(halves, "writes without all of their changes, or with some of others")


def _paths(write: Write, projects: dict[str, Path]) -> list[Path]:
    """What a write changes; a project's id is made by the server."""
    return [projects[write.name]] if write.name in projects else write.paths


def _check_projects(stored: Stored, by_name: dict[str, StoredRow], writes: Sequence[Write]) -> None:
    made = {one.name for one in writes if one.tool == PROJECT and one.name in by_name}
    none_of(made ^ stored.projects.keys(), "projects that are there, or are audited, alone")
    told = [
        (change.after["slug"], (change.namespace, change.path), change.before)
        for change in stored.changes
        if change.store == RECORDS
    ]
    right = [(slug, path, None) for slug, path in stored.projects.items()]
    assert sorted(told) == sorted(right)


def _check_states(stored: Stored, writes: Sequence[Write]) -> None:
    """The changes of a document lead from nothing to what is stored, without a gap."""
    states: dict[Path, list[StoredRow]] = defaultdict(list)
    for change in stored.changes:
        if change.store == DOCUMENTS:
            states[change.namespace, change.path].append(change)
    gaps = [
        path
        for path, each in states.items()
        if each[0].before is not None or any(a.after != b.before for a, b in pairwise(each))
    ]
    none_of(gaps, "documents whose changes do not follow one another")
    last = {path: each[-1].after for path, each in states.items()}
    assert_same(
        {path: after for path, after in last.items() if after is not None}, stored.documents
    )
    made = {path: fields for one in writes for path, fields in one.created.items()}
    other = [path for path, each in states.items() if path in made and each[0].after != made[path]]
    none_of(other, "documents that are not what was sent")
    none_of([path for path in states if _skips(path, states[path])], "counters that skip a number")


def _skips(path: Path, each: Sequence[StoredRow]) -> bool:
    numbers = [one.after["n"] for one in each] if path[1].startswith(ledger.COUNTERS) else []
    return numbers != list(range(1, len(numbers) + 1))


def _check_index(stored: Stored) -> None:
    """The index has the entries of the documents, and no others."""
    right: Counter[tuple[int, bytes, str]] = Counter()
    for (namespace, path), fields in stored.documents.items():
        collection, _, id = path.rpartition("/")
        index = CollectionIndex(namespace, collection, frozenset())
        right.update((field, key, id) for field, key in index.entries(fields))
    none_of(right - stored.entries, "entries that the index lacks")
    none_of(stored.entries - right, "entries of the index that belong to no document")


def assert_same(right: dict[Path, Fields], there: dict[Path, Fields]) -> None:
    none_of(right.keys() - there.keys(), "documents that are lost")
    none_of(there.keys() - right.keys(), "documents without a change")
    none_of([path for path in right if right[path] != there[path]], "documents in another state")


def none_of(wrong: Iterable[T], what: str) -> None:
    found = list(wrong)
    assert not found, f"{len(found)} {what}, such as {found[:SHOWN]}"
