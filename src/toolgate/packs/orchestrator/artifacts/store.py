"""Artifacts, as the tools ask for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.rows import ListPage, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class NewArtifact:
    """An artifact to be stored; its blob is stored already."""

    task_id: str
    path: str
    storage_ref: str
    size_bytes: int
    content_type: str
    checksum_sha256: str
    by: str


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """An artifact as it was stored."""

    row: Row
    replaced: str | None
    """The blob of the one it took the place of."""


@dataclass(frozen=True, slots=True)
class TaskQuota:
    """How much one task may hold."""

    artifacts: int
    content_bytes: int


class Artifacts(Protocol):
    """What is known of artifacts, but for their bytes."""

    async def get(self, viewer: Viewer, task_id: str, path: str) -> Row | None:
        """One artifact of a task that the caller reaches."""
        ...

    async def page(self, task_id: str, prefix: str, after: str | None, limit: int) -> ListPage:
        """Artifacts whose paths begin with a prefix; fewer if that is much text."""
        ...

    async def check_room(self, task_id: str, path: str, size: int) -> None:
        """Raise `QuotaExceeded` where a task has no room for these bytes at this path."""
        ...

    async def put(self, tx: Transaction, artifact: NewArtifact) -> StoredArtifact:
        """Store an artifact, in the place of the one that the task has at this path.

        Raises `QuotaExceeded`, also where others took the room since it was checked.
        """
        ...

    async def kept(self, blobs: Sequence[str]) -> set[str]:
        """Those of these blobs that belong to an artifact."""
        ...
