"""Running the HTTP server: one process or several, all alike."""

import asyncio
import gc
import math
import socket
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from toolgate import logs
from toolgate.app import opened
from toolgate.gate.limits import Allowances
from toolgate.gate.offer import AnyOffer
from toolgate.settings import Settings, inherited_settings, pass_to_workers
from toolgate.shutdown import (
    ANSWER_SECONDS,
    StoppableServer,
    Supervisor,
    end_with_parent,
    on_stop_signal,
)
from toolgate.stop_signals import StopSignals
from toolgate.transports.asgi import ASGIApp, Receive, Scope, Send
from toolgate.transports.connection.heads import KNOWN_HEADS
from toolgate.transports.connection.table import (
    CONNECTION_TABLE,
    ConnectionTable,
    backlog,
    open_files,
)
from toolgate.transports.connection.tls import TlsConnections
from toolgate.transports.edge import Edge
from toolgate.transports.peers import Peers
from toolgate.transports.web import web_app

if TYPE_CHECKING:
    from toolgate.certificates import CertificateFiles

STARTUP_FAILED = 3
HEALTHCHECK_SECONDS = 20
"""A worker that is silent for so long is replaced; a dead one at once. On a busy machine one that
starts is silent for several seconds, and would be replaced for ever."""


class Application:
    """The ASGI application; opens and closes its gate with the server's lifespan."""

    def __init__(self, settings: Settings, plugins: Sequence[AnyOffer] = ()) -> None:
        self._settings = settings
        self._plugins = plugins
        self._open = AsyncExitStack()
        self._web: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or follow the server's lifespan."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif self._web is not None:
            await self._web(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        table = ConnectionTable(self._settings.limits, Peers(self._settings.server).of_connection)
        try:
            edge = await self._start(table)
        except Exception as problem:
            await self._open.aclose()
            await send({"type": "lifespan.startup.failed", "message": str(problem)})
            raise
        scope["state"].update({KNOWN_HEADS: edge.heads, CONNECTION_TABLE: table})
        table.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        table.stop()
        await self._open.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _start(self, table: ConnectionTable) -> Edge:
        app = await self._open.enter_async_context(opened(self._settings, self._plugins))
        web = web_app(app.gate, app.credentials, self._settings, app.readiness(), app.outbound)
        self._web = edge = await self._open.enter_async_context(web)
        on_stop_signal(lambda: self._drain(app.gate.limits.allowances, table))
        # What lives now lives as long as the process: keep the collector away from it.
        gc.collect()
        gc.freeze()
        return edge

    def _drain(self, calls: Allowances, table: ConnectionTable) -> None:
        """Let running calls end by themselves for a while, and bodies arrive."""

        def end() -> None:
            table.stop_reading()
            calls.stop()

        asyncio.get_running_loop().call_later(self._settings.server.drain_seconds, end)


def worker() -> Application:
    """The application of a worker process, from the settings its parent handed down."""
    settings = inherited_settings()
    logs.set_up(settings.log)
    end_with_parent(settings.server.drain_seconds)
    return Application(settings)


def listen(settings: Settings) -> socket.socket:
    """A socket on the configured address; raises OSError when it is taken."""
    family = socket.AF_INET6 if ":" in settings.server.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((settings.server.host, settings.server.port))
    except OSError:
        bound.close()
        raise
    bound.listen(backlog(open_files()))
    bound.set_inheritable(True)
    return bound


def certificate_for(settings: Settings) -> "CertificateFiles":
    """The certificate to serve HTTPS with; made here if there is no good one."""
    # Heavy, so imported only when it is configured.
    from toolgate.certificates import ensure, names_for  # noqa: PLC0415

    server = settings.server
    return ensure(settings.data, names_for(server.host, server.allowed_hosts))


def _over_tls(settings: Settings, connections: type[asyncio.Protocol]) -> type[asyncio.Protocol]:
    files = certificate_for(settings).files
    # uvicorn only ever calls it, as it would call a class.
    return cast(Any, TlsConnections(connections, files.certificate, files.key))


def _with_port(settings: Settings, port: int) -> Settings:
    """The settings with the port that was bound: links that are given to people name it."""
    server = settings.server.model_copy(update={"port": port})
    return settings.model_copy(update={"server": server})


def run(
    settings: Settings,
    bound: socket.socket,
    connections: type[asyncio.Protocol],
    signals: StopSignals,
) -> None:
    """Serve on a bound socket until told to stop; finish running calls, store what waits."""
    settings = _with_port(settings, bound.getsockname()[1])
    config = uvicorn.Config(
        "toolgate.http_server:worker" if settings.server.workers > 1 else Application(settings),
        factory=settings.server.workers > 1,
        workers=settings.server.workers,
        http=_over_tls(settings, connections) if settings.server.https else connections,
        ws="none",
        backlog=backlog(open_files()),
        h11_max_incomplete_event_size=settings.limits.head_bytes,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=math.ceil(settings.server.drain_seconds) + ANSWER_SECONDS,
        timeout_worker_healthcheck=HEALTHCHECK_SECONDS,
    )
    if settings.server.workers == 1:
        server = StoppableServer(config, signals.received)
        server.run(sockets=[bound])
        return None if server.started else sys.exit(STARTUP_FAILED)
    pass_to_workers(settings)
    supervisor = Supervisor(config, sockets=[bound])
    supervisor.signal_queue.extend(signals.received)
    supervisor.run()
    if any(one.exitcode == STARTUP_FAILED for one in supervisor.processes):
        sys.exit(STARTUP_FAILED)
