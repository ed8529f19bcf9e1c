"""Whether a node is there: its status follows from when it was seen last and from the clock."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolgate.packs.orchestrator.vocabulary import NodeStatus

HEARTBEATS = 3
"""How many a node should send in the time after which it counts as inactive."""


@dataclass(slots=True)
class Liveness:
    """Tells the status of nodes."""

    inactive_seconds: int
    clock: Callable[[], float] = time.time

    @property
    def heartbeat_seconds(self) -> float:
        """How often a node should say that it is there."""
        return self.inactive_seconds / HEARTBEATS

    def now(self) -> str:
        """The time, as stored."""
        return _stamp(self.clock())

    def oldest(self) -> str:
        """A node that was not seen after this is inactive."""
        return _stamp(self.clock() - self.inactive_seconds)

    def status_of(self, node: Mapping[str, Any]) -> NodeStatus:
        """The status of a node at this moment."""
        if node["drained"]:
            return "drained"
        if node["last_seen_at"] is None:
            return "registered"
        return "active" if node["last_seen_at"] > self.oldest() else "inactive"


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
