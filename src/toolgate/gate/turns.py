"""How many calls run at once; the others wait for their turn, first come first served."""

import asyncio
from collections import deque


class Turns:
    """Who finds one free takes it with `free -= 1`, who finds none waits; both leave at the end."""

    def __init__(self, most: int) -> None:
        self.free = most
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Wait until somebody leaves a turn to us."""
        ours = asyncio.get_running_loop().create_future()
        self._waiting.append(ours)
        try:
            await ours
        except asyncio.CancelledError:
            if ours.done() and not ours.cancelled():
                self.release()  # it was left to us all the same
            elif ours in self._waiting:
                self._waiting.remove(ours)
            raise

    def release(self) -> None:
        """Leave the turn to who waits longest, or to whoever comes."""
        while self._waiting:
            next_one = self._waiting.popleft()
            if not next_one.done():
                return next_one.set_result(None)
        self.free += 1
        return None
