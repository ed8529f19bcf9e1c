"""Names for requests and audit rows: unique everywhere, without asking the kernel each time."""

import itertools
import os
import secrets
from weakref import WeakSet

OF_REQUESTS = "tg"
"""How the ids of requests begin that we make: none that a client gives can be taken for one."""


class Ids:
    """A random prefix for the process and a counter: 32 characters, never twice the same."""

    def __init__(self, start: str = "") -> None:
        self._start = start
        self.begin_anew()
        _every.add(self)

    def begin_anew(self) -> None:
        """Take another prefix."""
        self._prefix = self._start + secrets.token_hex(11)
        self._numbers = itertools.count()

    def new(self) -> str:
        """The next name."""
        return f"{self._prefix}{next(self._numbers):010x}"


_every: WeakSet[Ids] = WeakSet()


def _in_a_forked_process() -> None:
    """Its parent goes on counting behind the same prefix."""
    for ids in _every:
        ids.begin_anew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_a_forked_process)
