"""Liveness, readiness and figures for operators."""

import logging
from collections.abc import Awaitable, Callable

from toolgate.gate.metrics import Metrics
from toolgate.gate.principal import Role
from toolgate.transports.asgi import Receive, Scope, Send, principal_of, send, send_json

logger = logging.getLogger(__name__)


async def healthz(scope: Scope, receive: Receive, to: Send) -> None:
    """The process is alive."""
    await send_json(to, 200, {"status": "ok"})


class Readiness:
    """`/readyz`: the database and the document store answer."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """200 when ready, else 503."""
        try:
            await self._check()
        except Exception:
            logger.warning("not ready", exc_info=True)
            return await send_json(to, 503, {"status": "unavailable"})
        await send_json(to, 200, {"status": "ready"})


class MetricsPage:
    """`/metrics` for Prometheus; it names every tool, so it is for admins."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """The figures in Prometheus' text format."""
        if Role.ADMIN not in principal_of(scope).roles:
            told = "Metrics are for admins: use a key with role admin."
            return await send_json(to, 403, {"error": told})
        content_type, body = self._metrics.page()
        await send(to, 200, body, content=(b"content-type", content_type.encode()))
