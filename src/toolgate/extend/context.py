"""What a user's own handler is given."""

import logging
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolgate.extend.world import OwnWorld
from toolgate.gate.context import Context
from toolgate.gate.principal import Principal
from toolgate.ports.documents import DocumentStore, Fields, Filter, Query, StoredDocument

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger("toolgate.own")


@dataclass(frozen=True, slots=True)
class Documents:
    """The application's documents, to be read."""

    _store: DocumentStore

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """The fields of one document, or None."""
        return await self._store.get(collection, document_id)

    async def query(
        self, collection: str, filters: Sequence[Filter] = (), limit: int = 100
    ) -> Sequence[StoredDocument]:
        """At most `limit` documents that pass every filter."""
        return await self._store.query(Query(collection, filters, limit=limit))


class ToolLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger named after its tool; each of its lines says for which request."""

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the request id to what else was given."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs


@dataclass(slots=True)
class HandlerContext:
    """One call's world: who calls, and what the handler may ask."""

    principal: Principal
    request_id: str
    _tool: str
    _ctx: Context[OwnWorld]
    _http: "httpx2.AsyncClient | None" = None

    @property
    def documents(self) -> Documents:
        """The application's documents, to be read."""
        return Documents(self._ctx.world.documents)

    async def progress(
        self, done: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Say how far the call has come; for a tool declared `slow`."""
        await self._ctx.progress(done, total, message)

    @property
    def logger(self) -> ToolLogger:
        """Writes to the server's log, from level `log.level` on, with the request id."""
        return ToolLogger(logger.getChild(self._tool), {"request_id": self.request_id})

    @property
    def http(self) -> "httpx2.AsyncClient":
        """The call's own HTTP client, on shared connections; it keeps no cookies."""
        if self._http is None:
            self._http = self._ctx.world.outbound.client(self._ctx.world.seconds)
        return self._http


def handler_context(ctx: Context[OwnWorld], name: str) -> HandlerContext:
    """A call's context, as a user's own handler sees it."""
    return HandlerContext(ctx.principal, ctx.request_id, name, ctx)
