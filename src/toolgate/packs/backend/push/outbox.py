"""What the outbox holds, as an operator looks at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class KeptNotification:
    """Messages that were sent at once."""

    number: int
    notification: dict[str, Any]
    recipients: int
    tokens: Sequence[str]
    created_at: str


class PushOutbox(Protocol):
    """Keeps notifications in the database instead of sending them."""

    async def page(self, before: int | None, limit: int) -> list[KeptNotification]:
        """The newest ones, or those before a number; newest first."""
        ...
