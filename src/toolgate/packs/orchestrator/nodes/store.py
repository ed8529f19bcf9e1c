"""Nodes, as the tools ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.vocabulary import AckStatus, AvailabilityStatus

AvailabilityKind = Literal["image", "model"]


@dataclass(frozen=True, slots=True)
class Available:
    """An image or a model on a node, as the node reports it."""

    kind: AvailabilityKind
    name: str
    version: str
    """Empty where the node named none."""
    status: AvailabilityStatus


@dataclass(frozen=True, slots=True)
class WholeNode:
    """A node with all that it reported."""

    row: Row
    availability: Sequence[Row]


@dataclass(frozen=True, slots=True)
class MadeNode:
    """A node, and its key, which is not kept anywhere."""

    row: Row
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """What of a node is changed; None leaves it as it is."""

    display_name: str | None = None
    worker_api_target_url: str | None = None
    metadata: Mapping[str, Any] | None = None
    drained: bool | None = None
    config: Mapping[str, Any] | None = None
    """A new one is a new version."""


class Nodes(Protocol):
    """The registry of nodes. What takes a slug answers None where there is no such node."""

    async def page(self, after: str | None, limit: int) -> ListPage:
        """Nodes by slug; fewer than `limit` if they are large."""
        ...

    async def get(self, slug: str) -> Row | None:
        """One node."""
        ...

    async def whole(self, slug: str) -> WholeNode | None:
        """One node with its availability."""
        ...

    async def create(self, tx: Transaction, slug: str, change: NodeChange) -> MadeNode:
        """Store a node and make its key; raises `Conflict` where the slug is taken."""
        ...

    async def change(self, tx: Transaction, slug: str, change: NodeChange) -> Row | None:
        """Change a node."""
        ...

    async def replace_key(self, tx: Transaction, slug: str) -> MadeNode | None:
        """Make a new key for a node; those it had end."""
        ...

    async def delete(self, tx: Transaction, slug: str) -> Row | None:
        """Delete a node with all that it reported, and end its keys."""
        ...

    async def refresh_config(self, tx: Transaction, slug: str) -> Row | None:
        """Give the configuration a new version, which the node will fetch."""
        ...

    async def see(self, tx: Transaction, slug: str, change: NodeChange | None = None) -> Row | None:
        """Note that a node is there, and what it says of itself."""
        ...

    async def report(
        self,
        tx: Transaction,
        slug: str,
        capabilities: Mapping[str, Any],
        available: Sequence[Available],
    ) -> Row | None:
        """Replace all that a node reported before."""
        ...

    async def acknowledge(
        self, tx: Transaction, slug: str, version: str, status: AckStatus, error: str | None
    ) -> Row | None:
        """Note what became of the configuration; raises `Conflict` for another version."""
        ...
