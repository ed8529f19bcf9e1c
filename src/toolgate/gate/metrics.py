"""Figures about calls, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

UNKNOWN = "(unknown)"


class Metrics:
    """How many calls, how they ended, how long they took."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "toolgate_calls",
            "Calls by tool, transport and outcome.",
            ["tool", "transport", "outcome"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "toolgate_call_seconds",
            "Time from request to answer.",
            ["tool"],
            registry=self._registry,
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60),
        )

        self._known: dict[tuple[str, str, str], tuple[Counter, Histogram]] = {}

    def count(self, tool: str | None, transport: str, outcome: str, seconds: float) -> None:
        """Note one call; names that are no tool's share a label, so labels stay bounded."""
        key = (tool or UNKNOWN, transport, outcome)
        known = self._known.get(key)
        if known is None:
            known = self._calls.labels(*key), self._seconds.labels(key[0])
            self._known[key] = known
        known[0].inc()
        known[1].observe(seconds)

    def page(self) -> tuple[str, bytes]:
        """Content type and text of the page."""
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)
