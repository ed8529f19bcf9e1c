"""What a handler is given: who calls, and what it may ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import NAMESPACE_URL, UUID

from toolgate.db.transactions import Transaction
from toolgate.gate.principal import Principal
from toolgate.ports.content import ContentStore
from toolgate.ports.documents import DocumentStore


class Exchange(Protocol):
    """The live side of an MCP request, for tools declared `interactive`."""

    @property
    def raw(self) -> Any:
        """The SDK's own request context."""
        ...

    @property
    def params(self) -> Any:
        """The SDK's own call parameters."""
        ...

    @property
    def publish(self) -> Callable[[Any], Awaitable[None]]:
        """Tells open subscriptions of a change."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside world, as the composition root wired it."""

    documents: DocumentStore
    content: ContentStore
    uuid_namespace: UUID = NAMESPACE_URL
    """Of names whose UUID is asked for without one."""


@dataclass(slots=True, kw_only=True)
class Context:
    """One call's world."""

    request_id: str
    principal: Principal
    ports: Ports
    transaction: Transaction | None = None
    exchange: Exchange | None = None

    @property
    def documents(self) -> DocumentStore:
        """The application's documents."""
        return self.ports.documents

    @property
    def content(self) -> ContentStore:
        """Published content of projects."""
        return self.ports.content

    @property
    def tx(self) -> Transaction:
        """The transaction this write commits in, together with its audit row."""
        if self.transaction is None:
            raise RuntimeError("a tool declared READ must not write")
        return self.transaction
