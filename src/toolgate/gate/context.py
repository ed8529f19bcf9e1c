"""What a handler is given: who calls, and what it may ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from toolgate.db.transactions import Transaction
from toolgate.gate.principal import Principal

World = TypeVar("World")
"""A pack's own ports, as its handlers see them."""


Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells whoever waits for a call how far it has come: done, of how much, in words."""


class NotAWrite(RuntimeError):
    """A tool that is declared to read asks for a transaction."""


@dataclass(slots=True, kw_only=True)
class Context(Generic[World]):
    """One call: who makes it, and the ports of the tool's pack."""

    request_id: str
    principal: Principal
    world: World
    transaction: Transaction | None = None
    report: Report | None = None
    """Where nobody wants to know, nothing."""
    dry_run: bool = False
    """Whether nothing is to be stored. The transaction takes back what is in the database; a
    handler that stores elsewhere first leaves that out itself."""

    @property
    def tx(self) -> Transaction:
        """The transaction this write commits in; with its audit row, if all of it is in there."""
        if self.transaction is None:
            raise NotAWrite("ctx.tx is for tools declared WRITE or DESTROY, and this one reads")
        return self.transaction

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the call has come; `done` is more every time.

        An MCP client that asked for it and a person at a terminal see it. Only a tool declared
        `slow` is heard over HTTP.
        """
        if self.report is not None:
            await self.report(done, total, message)
