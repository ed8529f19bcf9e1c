"""How many calls run at once; the others wait for their turn, dealt out caller by caller."""

import asyncio
from collections import Counter, deque


class Turns:
    """Who finds one free takes it with `free -= 1`, who finds none waits; both leave at the end.

    Of one caller's calls the first that came is the first that goes on; callers take it in turn,
    so that one call of somebody does not wait for the hundred of somebody else.
    """

    def __init__(self, most: int) -> None:
        self.free = most
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """By caller; the one whose turn it is comes first."""

    async def wait(self, caller: str) -> None:
        """Wait until somebody leaves a turn to us."""
        ours = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(ours)
        try:
            await ours
        except asyncio.CancelledError:
            if ours.done() and not ours.cancelled():
                self.release(caller)  # it was left to us all the same
            else:
                self._forget(caller, ours)
            raise

    def release(self, caller: str) -> None:
        """Leave the turn of this caller to who is next, or to whoever comes."""
        del caller
        if not any(self._wake(one) for one in list(self._waiting)):
            self.free += 1

    def _wake(self, caller: str) -> bool:
        """Leave a turn to this caller, which is the last to be next then; whether it waited."""
        waiting = self._waiting.pop(caller)
        while waiting:
            first = waiting.popleft()
            if not first.done():
                if waiting:
                    self._waiting[caller] = waiting
                first.set_result(None)
                return True
        return False

    def _forget(self, caller: str, one: "asyncio.Future[None]") -> None:
        waiting = self._waiting.get(caller)
        if waiting is not None and one in waiting:
            waiting.remove(one)
            if not waiting:
                del self._waiting[caller]


class SharedTurns(Turns):
    """Turns that are held for hours: nobody takes so many that others find none.

    A caller takes another one only while it has fewer than are left: alone at most half of them
    (rounded up), and a newcomer finds one as long as there is any. None is ever `free`: whoever
    comes has to ask with `wait`, which waits only if it must.
    """

    def __init__(self, most: int) -> None:
        super().__init__(0)
        self._left = most
        self._held: Counter[str] = Counter()

    async def wait(self, caller: str) -> None:
        """Take a turn, at once if this caller may."""
        if self._may_take(caller):
            self._take(caller)
        else:
            await super().wait(caller)

    def release(self, caller: str) -> None:
        """Give a turn back; leave what is left to those who may have it now."""
        self._left += 1
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]
        for one in list(self._waiting):
            if self._may_take(one) and self._wake(one):
                self._take(one)

    def _may_take(self, caller: str) -> bool:
        return self._held[caller] < self._left

    def _take(self, caller: str) -> None:
        self._left -= 1
        self._held[caller] += 1
