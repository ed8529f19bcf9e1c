"""What the generator is told, and what it tells."""

import json
import random
from dataclasses import asdict, dataclass, field

NEW_ID = b"{twenty bytes of id}"
"""In a request, and in the answer to it: another id in each call."""


def new_id() -> bytes:
    """An id for NEW_ID, as long as that; random, as ids of documents are."""
    return b"%020x" % random.getrandbits(80)


@dataclass(frozen=True, slots=True)
class Job:
    """What to ask, how, and whose CPU to count."""

    port: int
    requests: list[bytes]
    """Asked in turn, over and over."""
    body: bytes
    """What follows the head of every answer."""
    connections: int = 16
    warm_up: float = 0.4
    seconds: float = 1.5
    rate: float | None = None
    """Calls a second to keep to; unless given, each answer is followed by the next call."""
    pids: list[int] = field(default_factory=list[int])
    beside: list[int] = field(default_factory=list[int])
    """A database server's processes, whose CPU is counted by itself."""
    settle: float = 0.0
    """Seconds of rest that show that the server has done what it put off."""
    cores: list[int] = field(default_factory=list[int])
    """Where the generator runs; anywhere unless given."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: times in microseconds."""

    calls: int
    per_second: float
    cpu: float
    """Of the server's processes, for one call."""
    p50: float
    p99: float
    own_cpu: float
    """Of the generator, for one call."""
    beside: float = 0.0
    """CPU of the database server, for one call."""
    waited: float = 0.0
    """Part of the time in which the server could have run, but others had its core."""


def packed(job: Job) -> str:
    """The job as JSON."""
    told = asdict(job)
    told["requests"] = [one.decode("latin-1") for one in job.requests]
    told["body"] = job.body.decode("latin-1")
    return json.dumps(told)


def unpacked(text: str) -> Job:
    """The job from JSON."""
    told = json.loads(text)
    told["requests"] = [one.encode("latin-1") for one in told["requests"]]
    told["body"] = told["body"].encode("latin-1")
    return Job(**told)
