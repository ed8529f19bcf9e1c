"""Push notifications, as tools and campaigns send them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol, Self

BATCH = 500
"""Tokens that are sent to at a time, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What a person sees."""

    title: str
    body: str
    icon: str | None = None
    image: str | None = None
    click_action: str | None = None
    """The address that a click opens."""

    def fields(self) -> dict[str, str]:
        """What is set, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """The notification with these fields."""
        return cls(**fields)


class Delivery(StrEnum):
    """What became of one message."""

    SENT = "sent"
    GONE = "gone"
    """Nobody has this token any more, or it never was one: it can be deleted."""
    FAILED = "failed"
    """Surely not accepted, for a reason that says nothing about the token."""
    UNKNOWN = "unknown"
    """Handed over and not confirmed: it may have been accepted. Not sent again by itself."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What became of the message to one token."""

    token: str
    delivery: Delivery
    reason: str | None = None
    """Why it was not sent, in the words of the service: `UNREGISTERED`, `UNAVAILABLE`."""


class PushUnavailable(Exception):
    """The service takes no messages at all; the message is fit for a caller.

    `results`: what became of those messages of the batch that were handed over. The others were
    not, so they can be sent later.
    """

    def __init__(self, message: str, results: Sequence[PushResult] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.results = tuple(results)


class Push(Protocol):
    """Sends notifications."""

    async def send(self, notification: Notification, tokens: Sequence[str]) -> list[PushResult]:
        """Send one message to each token, at most `BATCH`; results in their order.

        Raises `PushUnavailable` where the service as a whole cannot be used.
        """
        ...

    async def check(self) -> str:
        """A sentence on where notifications go; raises `PushUnavailable` where they cannot."""
        ...
