"""What a handler is given: who calls, and what it may ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from toolgate.db.transactions import Transaction
from toolgate.gate.principal import Principal

World = TypeVar("World")
"""A pack's own ports, as its handlers see them."""


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


@dataclass(slots=True, kw_only=True)
class Context(Generic[World]):
    """One call: who makes it, and the ports of the tool's pack."""

    request_id: str
    principal: Principal
    world: World
    transaction: Transaction | None = None
    exchange: Exchange | None = None

    @property
    def tx(self) -> Transaction:
        """The transaction this write commits in, together with its audit row."""
        if self.transaction is None:
            raise RuntimeError("a tool declared READ must not write")
        return self.transaction
