"""Figures about calls, for Prometheus."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

UNKNOWN = "(unknown)"
BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60)
"""Seconds; what took longer than all of them has a place of its own."""


class Durations:
    """How long the calls of a tool took."""

    __slots__ = ("places", "seconds")

    def __init__(self) -> None:
        self.places = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Metrics(Collector):
    """How many calls, how they ended, how long they took.

    Counted in plain numbers and worded for Prometheus only when it asks: its own counters lock
    and look for their place at every call.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], int] = {}
        self._times: dict[str, Durations] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def count(self, tool: str | None, transport: str, outcome: str, seconds: float) -> None:
        """Note one call; names that are no tool's share a label, so labels stay bounded."""
        name = tool or UNKNOWN
        key = (name, transport, outcome)
        self._calls[key] = self._calls.get(key, 0) + 1
        times = self._times.get(name)
        if times is None:
            times = self._times[name] = Durations()
        times.places[bisect_left(BUCKETS, seconds)] += 1
        times.seconds += seconds

    def collect(self) -> Iterator[Metric]:
        """Everything counted so far, in Prometheus' words."""
        calls = CounterMetricFamily(
            "toolgate_calls",
            "Calls by tool, transport and outcome.",
            labels=["tool", "transport", "outcome"],
        )
        for key, number in self._calls.items():
            calls.add_metric(key, number)
        yield calls
        seconds = HistogramMetricFamily(
            "toolgate_call_seconds", "Time from request to answer.", labels=["tool"]
        )
        edges = [*(str(float(one)) for one in BUCKETS), "+Inf"]
        for name, times in self._times.items():
            through = [float(number) for number in accumulate(times.places)]
            seconds.add_metric([name], list(zip(edges, through, strict=True)), times.seconds)
        yield seconds

    def page(self) -> tuple[str, bytes]:
        """Content type and text of the page."""
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)
