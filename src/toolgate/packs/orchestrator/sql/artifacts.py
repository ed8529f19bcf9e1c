"""Artifacts in the gate's database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from toolgate.db.engine import Database
from toolgate.db.records import note_record
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.gate.errors import QuotaExceeded
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.artifacts.paths import end_of
from toolgate.packs.orchestrator.artifacts.store import NewArtifact, StoredArtifact, TaskQuota
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.sql.advisory_locks import lock
from toolgate.packs.orchestrator.sql.artifact_tables import artifacts
from toolgate.packs.orchestrator.sql.reach import reached_tasks
from toolgate.packs.orchestrator.sql.tables import tasks

PAGE_BYTES = 128 * 1024
"""A page ends before its paths are longer than this together, but has one artifact at least."""


class SqlArtifacts:
    """Reads and stores what is known of artifacts."""

    def __init__(self, database: Database, quota: TaskQuota) -> None:
        self._database = database
        self._quota = quota

    async def get(self, viewer: Viewer, task_id: str, path: str) -> Row | None:
        """One artifact of a task that the caller reaches."""
        wanted = select(artifacts).join(tasks, tasks.c.id == artifacts.c.task_id)
        wanted = wanted.where(tasks.c.id == task_id, reached_tasks(viewer))
        wanted = wanted.where(artifacts.c.path == path)
        row = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().first(), quick=True
        )
        return dict(row) if row is not None else None

    async def page(self, task_id: str, prefix: str, after: str | None, limit: int) -> ListPage:
        """Artifacts whose paths begin with a prefix, by path."""
        wanted = select(artifacts).where(artifacts.c.task_id == task_id)
        if prefix:
            wanted = wanted.where(artifacts.c.path >= prefix)
            if (end := end_of(prefix)) is not None:
                wanted = wanted.where(artifacts.c.path < end)
        if after is not None:
            wanted = wanted.where(artifacts.c.path > after)
        wanted = wanted.order_by(artifacts.c.path).limit(limit + 1)
        rows = await self._database.read(
            lambda connection: connection.execute(wanted).mappings().all(), quick=True
        )
        shown = rows[: min(limit, _fitting(rows))]
        return ListPage([dict(row) for row in shown], more=len(rows) > len(shown))

    async def check_room(self, task_id: str, path: str, size: int) -> None:
        """Raise where a task has no room; one who puts at the same moment may still take it."""
        await self._database.read(
            lambda connection: self._check_room(connection, task_id, path, size), quick=True
        )

    def _check_room(self, connection: Connection, task_id: str, path: str, size: int) -> None:
        quota = self._quota
        held = select(func.count(), func.coalesce(func.sum(artifacts.c.size_bytes), 0)).where(
            artifacts.c.task_id == task_id, artifacts.c.path != path
        )
        number, used = connection.execute(held).one()
        if number >= quota.artifacts:
            raise QuotaExceeded(
                f"The task has {number} other artifacts, and may have {quota.artifacts} in all "
                "(setting orchestrator.task_artifacts). Replace one, or ask an operator for more."
            )
        if used + size > quota.content_bytes:
            raise QuotaExceeded(
                f"The other artifacts of the task have {used} bytes and this one {size}; together "
                f"they may have {quota.content_bytes} (setting orchestrator.task_artifact_bytes). "
                "Replace a large one, or ask an operator for more."
            )

    async def put(self, tx: Transaction, artifact: NewArtifact) -> StoredArtifact:
        """Store an artifact, in the place of the one that the task has at this path.

        The room is checked again, as nobody else puts one for this task before the transaction
        ends.
        """
        now = timestamp()
        row: dict[str, Any] = {
            "task_id": artifact.task_id,
            "path": artifact.path,
            "storage_ref": artifact.storage_ref,
            "size_bytes": artifact.size_bytes,
            "content_type": artifact.content_type,
            "checksum_sha256": artifact.checksum_sha256,
            "created_at": now,
            "updated_at": now,
            "updated_by": artifact.by,
        }

        def work(connection: Connection) -> StoredArtifact:
            lock(connection, artifacts.name, artifact.task_id)
            self._check_room(connection, artifact.task_id, artifact.path, artifact.size_bytes)
            here = (artifacts.c.task_id == artifact.task_id, artifacts.c.path == artifact.path)
            locked = select(artifacts).where(*here).with_for_update()
            old = connection.execute(locked).mappings().first()
            if old is None:
                if _insert(connection, row):
                    note_record(tx, connection, artifacts, None, row)
                    return StoredArtifact(row, None)
                # Another call stored the first one at this path meanwhile.
                old = connection.execute(locked).mappings().one()
            kept = {**row, "created_at": old["created_at"]}
            connection.execute(update(artifacts).where(*here).values(kept))
            note_record(tx, connection, artifacts, dict(old), kept)
            return StoredArtifact(kept, old["storage_ref"])

        return await tx.run(work)

    async def kept(self, blobs: Sequence[str]) -> set[str]:
        """Those of these blobs that belong to an artifact."""
        wanted = select(artifacts.c.storage_ref).where(artifacts.c.storage_ref.in_(blobs))
        return await self._database.read(
            lambda connection: set(connection.execute(wanted).scalars())
        )


def _insert(connection: Connection, row: dict[str, Any]) -> bool:
    """Whether the row was stored, which it is not where there is one."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = dialect.insert(artifacts).values(row).on_conflict_do_nothing()
    counted = connection.execute(new, execution_options={"preserve_rowcount": True})
    return counted.rowcount == 1


def _fitting(rows: Sequence[Any]) -> int:
    """How many of the first rows fit a page."""
    size = 0
    for number, row in enumerate(rows):
        size += len(row["path"].encode()) + len(row["content_type"])
        if size > PAGE_BYTES and number:
            return number
    return len(rows)
