"""Nodes in the gate's database."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from toolgate.db.engine import Database
from toolgate.db.records import delete_records, insert_record, insert_records, update_records
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.nodes.config_versions import next_version
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.nodes.store import Available, MadeNode, NodeChange, WholeNode
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.sql.leases import end_leases
from toolgate.packs.orchestrator.sql.pages import bounded, every, first
from toolgate.packs.orchestrator.sql.tables import availability, nodes
from toolgate.packs.orchestrator.vocabulary import AckStatus
from toolgate.ports.keys import PackKeys

SHOWN = [column for column in nodes.c if column.name != "capabilities"]
LISTED = [column for column in SHOWN if column.name != "config"]


class SqlNodes:
    """Reads and stores nodes."""

    def __init__(self, database: Database, liveness: Liveness, keys: PackKeys) -> None:
        self._database = database
        self._liveness = liveness
        self._keys = keys

    async def page(self, after: str | None, limit: int) -> ListPage:
        """Nodes by slug; fewer than `limit` if they are large."""
        wanted = select(*LISTED).order_by(nodes.c.slug).limit(limit + 1)
        if after is not None:
            wanted = wanted.where(nodes.c.slug > after)
        rows = await self._database.read(lambda one: every(one, wanted), quick=True)
        fitting, more = bounded(rows, limit)
        return ListPage(fitting, more)

    async def get(self, slug: str) -> Row | None:
        """One node."""
        return await self._database.read(lambda one: _node(one, slug), quick=True)

    async def whole(self, slug: str) -> WholeNode | None:
        """One node with its availability."""

        def look(connection: Connection) -> WholeNode | None:
            row = first(connection, select(nodes).where(nodes.c.slug == slug))
            if row is None:
                return None
            wanted = select(availability).where(availability.c.node_id == row["id"])
            by_name = (availability.c.kind, availability.c.name, availability.c.version)
            return WholeNode(row, every(connection, wanted.order_by(*by_name)))

        return await self._database.read(look, quick=True)

    async def create(self, tx: Transaction, slug: str, change: NodeChange) -> MadeNode:
        """Store a node and make its key; raises `Conflict` where the slug is taken."""
        now = self._liveness.now()
        row = {
            "id": str(uuid.uuid4()),
            "slug": slug,
            "display_name": slug,
            "metadata": "{}",
            "drained": False,
            "config": "{}",
            **_given(change),
            "config_version": next_version(None, self._liveness.clock()),
            "created_at": now,
            "updated_at": now,
        }

        def work(connection: Connection) -> MadeNode:
            try:
                insert_record(tx, connection, nodes, row)
            except IntegrityError:
                raise Conflict(f"There is a node {slug!r} already. Choose another slug.") from None
            return MadeNode(_stored(connection, slug), self._keys.issue(connection, slug))

        return await tx.run(work)

    async def change(self, tx: Transaction, slug: str, change: NodeChange) -> Row | None:
        """Change a node."""

        def values(old: Row) -> dict[str, Any]:
            given = {**_given(change), "updated_at": self._now()}
            return given if change.config is None else given | self._next_version(old)

        return await self._update(tx, slug, values)

    async def replace_key(self, tx: Transaction, slug: str) -> MadeNode | None:
        """Make a new key for a node; those it had end."""

        def work(connection: Connection) -> MadeNode | None:
            row = _node(connection, slug, lock=True)
            if row is None:
                return None
            self._keys.revoke_all(connection, slug)
            return MadeNode(row, self._keys.issue(connection, slug))

        return await tx.run(work)

    async def delete(self, tx: Transaction, slug: str) -> Row | None:
        """Delete a node with all that it reported, and end its keys."""

        def work(connection: Connection) -> Row | None:
            row = _node(connection, slug, lock=True)
            if row is not None:
                own = availability.c.node_id == row["id"]
                delete_records(tx, connection, availability, [own])
                end_leases(tx, connection, slug, self._now())
                delete_records(tx, connection, nodes, [nodes.c.id == row["id"]])
                self._keys.revoke_all(connection, slug)
            return row

        return await tx.run(work)

    async def refresh_config(self, tx: Transaction, slug: str) -> Row | None:
        """Give the configuration a new version, which the node will fetch."""
        return await self._update(tx, slug, self._next_version)

    async def see(self, tx: Transaction, slug: str, change: NodeChange | None = None) -> Row | None:
        """Note that a node is there, and what it says of itself."""
        given = _given(change) if change else {}
        return await self._update(tx, slug, lambda _: {**given, "last_seen_at": self._now()})

    async def report(
        self,
        tx: Transaction,
        slug: str,
        capabilities: Mapping[str, Any],
        available: Sequence[Available],
    ) -> Row | None:
        """Replace all that a node reported before."""
        now = self._now()
        snapshot = orjson.dumps(capabilities).decode()
        said = {"capabilities": snapshot, "last_capability_at": now, "last_seen_at": now}

        def replace(connection: Connection, row: Row) -> None:
            own = availability.c.node_id == row["id"]
            delete_records(tx, connection, availability, [own])
            rows = [_available(row["id"], one, now) for one in available]
            insert_records(tx, connection, availability, rows)

        return await self._update(tx, slug, lambda _: said, replace)

    async def acknowledge(
        self, tx: Transaction, slug: str, version: str, status: AckStatus, error: str | None
    ) -> Row | None:
        """Note what became of the configuration; raises `Conflict` for another version."""

        def values(old: Row) -> dict[str, Any]:
            if old["config_version"] != version:
                raise Conflict(
                    "This is not the newest version of the configuration. Fetch it again.",
                    current_version=old["config_version"],
                )
            now = self._now()
            return {
                "config_ack_version": version,
                "config_ack_at": now,
                "config_ack_status": status,
                "config_ack_error": error,
                "last_seen_at": now,
            }

        return await self._update(tx, slug, values)

    def _now(self) -> str:
        return self._liveness.now()

    def _next_version(self, old: Row) -> dict[str, Any]:
        now = self._liveness.clock()
        version = next_version(old["config_version"], now)
        return {"config_version": version, "updated_at": self._now()}

    async def _update(
        self,
        tx: Transaction,
        slug: str,
        values: Callable[[Row], Mapping[str, Any]],
        also: Callable[[Connection, Row], None] | None = None,
    ) -> Row | None:
        """Change a node by what it is: its row is locked, so that nobody else's change is lost."""

        def work(connection: Connection) -> Row | None:
            old = _node(connection, slug, lock=True)
            if old is None:
                return None
            new = dict(values(old))
            update_records(tx, connection, nodes, [nodes.c.id == old["id"]], new)
            if also:
                also(connection, old)
            return {**old, **{name: new[name] for name in new if name in old}}

        return await tx.run(work)


def _node(connection: Connection, slug: str, *, lock: bool = False) -> Row | None:
    wanted = select(*SHOWN).where(nodes.c.slug == slug)
    return first(connection, wanted.with_for_update() if lock else wanted)


def _stored(connection: Connection, slug: str) -> Row:
    row = _node(connection, slug)
    assert row is not None
    return row


def _given(change: NodeChange) -> dict[str, Any]:
    """The columns that are to change."""
    plain = ("display_name", "worker_api_target_url", "drained")
    given = {name: value for name in plain if (value := getattr(change, name)) is not None}
    for name in ("metadata", "config"):
        if (value := getattr(change, name)) is not None:
            given[name] = orjson.dumps(value).decode()
    return given


def _available(node_id: str, one: Available, now: str) -> dict[str, Any]:
    return {
        "node_id": node_id,
        "kind": one.kind,
        "name": one.name,
        "version": one.version,
        "status": one.status,
        "reported_at": now,
    }
