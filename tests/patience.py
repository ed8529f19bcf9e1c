"""How long a test waits for something that has to happen, and how long the product waits here.

Far longer than it takes on a busy machine, so only a hang gets there. A test that is about a
deadline of the product sets its own clock, or a short deadline whose passing cannot come too late.
"""

import time
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from limits.aio import strategies
from limits.aio.storage import memory

from toolgate.gate import sliding_window, summaries

PATIENT = 90.0
CLOCK = time.time
DEADLINES: dict[str, Any] = {
    # A client of the SDK that waits longer for its first answer takes the server for an older one.
    "mcp.client.session.DISCOVER_TIMEOUT_SECONDS": PATIENT,
    "toolgate.app.CLOSE_SECONDS": PATIENT,
    "toolgate.background.STOP_SECONDS": PATIENT,
    "toolgate.db.connections.BUSY_SECONDS": PATIENT,
    "toolgate.gate.concurrency.CLEANUP_SECONDS": PATIENT,
    "toolgate.db.engine.ANSWER_SECONDS": (1.0, PATIENT),
    "toolgate.gate.limits.REDIS_SECONDS": PATIENT,
    "toolgate.identity.upstreams.SECONDS": PATIENT,
    "toolgate.outbound.hops.CONNECT_SECONDS": PATIENT,
    "toolgate.readiness.ANSWER_SECONDS": PATIENT,
    "toolgate.transports.mcp.handover.PATIENCE": PATIENT,
}
"""Deadlines of the product that tell a fault from a slow answer; on a busy machine, wrongly."""
OF_SERVERS: dict[str, Any] = {
    "toolgate.identity.oauth.grants.CODE_SECONDS": 10 * PATIENT,
    "toolgate.http_server.HEALTHCHECK_SECONDS": PATIENT,
    "toolgate.shutdown.CLOSE_SECONDS": PATIENT,
    "toolgate.transports.connection.limited.KEEP_ALIVE_SECONDS": 10 * PATIENT,
}
"""Those of a server that is a process of its own."""
IN_PROCESS: dict[str, Any] = {"toolgate.db.short_reads.SECONDS": PATIENT}
"""Those of a gate within a test: what is stopped there is made anew in a thread, so that nobody can
say after how many turns of the event loop it is done."""

OF_CLIENTS: dict[str, Any] = {"mcp.client.session.DISCOVER_TIMEOUT_SECONDS": PATIENT}
"""Of the SDK: a client that waited so long takes the server for one of the older protocol."""


def hold_the_minute() -> None:
    """Let all that is counted by the minute be counted in one, unless a test sets the clock."""

    def now() -> float:
        return 1_800_000_000.0 if time.time is CLOCK else time.time()

    for module in (sliding_window, summaries, memory, strategies):
        module.time = SimpleNamespace(time=now)  # type: ignore[attr-defined]


def lengthen(deadlines: dict[str, Any]) -> None:
    """Give the product more time, in this process and as long as it lives."""
    for name, value in deadlines.items():
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(module), constant), name
        setattr(import_module(module), constant, value)
