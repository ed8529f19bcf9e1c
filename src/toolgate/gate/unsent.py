"""How many bytes of attachments wait in memory for clients that have not taken them yet.

A call ends when its attachment is read, but a client may take its time to read the response.
Without a bound, one that opens many connections and reads from none of them fills the memory.
"""

from collections import Counter
from collections.abc import Callable

from toolgate.gate.errors import RateLimited

RETRY_SECONDS = 5


class Lease:
    """Room that was taken for an attachment, until its bytes are sent or nobody has them."""

    __slots__ = ("_give_back",)

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """Give the room back; a second time does nothing."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()

    def __enter__(self) -> None:
        """Give it back at the end of the block."""

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        """Whoever drops an attachment has nothing more to do."""
        self.release()


class UnsentBytes:
    """The room of one process.

    As with turns, a caller takes more only while it has less than is left, so that a newcomer finds
    some. Where nobody has any, an attachment of any size gets it.
    """

    def __init__(self, most: int) -> None:
        self._left = self._most = most
        self._held: Counter[str] = Counter()

    def take(self, caller: str, size: int) -> Lease:
        """Take room before the bytes are read; raises `RateLimited` where there is none."""
        held = self._held[caller]
        if self._left < self._most and (size > self._left or held >= self._left):
            raise self.refusal(held)
        self._left -= size
        self._held[caller] += size
        return Lease(lambda: self._give_back(caller, size))

    def refusal(self, held: int) -> RateLimited:
        """What is said to who finds no room."""
        why = (
            f"You have not read {held} bytes of attachments yet. Read these responses, or "
            "close them"
            if held
            else "Other callers have not read their attachments yet"
        )
        return RateLimited(f"{why}. Try again in {RETRY_SECONDS} s.", RETRY_SECONDS)

    def _give_back(self, caller: str, size: int) -> None:
        self._left += size
        self._held[caller] -= size
        if not self._held[caller]:
            del self._held[caller]
