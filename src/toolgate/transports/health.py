"""Liveness, readiness and figures for operators."""

from toolgate.gate.metrics import Metrics
from toolgate.gate.principal import Role
from toolgate.readiness import Readiness
from toolgate.transports.asgi import Receive, Scope, Send, principal_of, send, send_json


async def healthz(scope: Scope, receive: Receive, to: Send) -> None:
    """The process is alive."""
    await send_json(to, 200, {"status": "ok"})


class ReadinessPage:
    """`/readyz`: a call would be answered."""

    def __init__(self, readiness: Readiness) -> None:
        self._readiness = readiness

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """200 when ready, else 503 with the names of what fails; why is in the log."""
        if failing := await self._readiness.failing():
            return await send_json(to, 503, {"status": "unavailable", "failing": failing})
        await send_json(to, 200, {"status": "ready"})


class MetricsPage:
    """`/metrics` for Prometheus; it names every tool, so it is for admins."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, to: Send) -> None:
        """The figures in Prometheus' text format."""
        if Role.ADMIN not in principal_of(scope).roles:
            message = "Metrics are for admins: use a key with role admin."
            return await send_json(to, 403, {"error": message})
        content_type, body = self._metrics.page()
        await send(to, 200, body, content=(b"content-type", content_type.encode()))
