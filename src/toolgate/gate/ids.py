"""Names for requests and audit rows: unique everywhere, without asking the kernel each time."""

import itertools
import secrets

OF_REQUESTS = "tg"
"""How the ids of requests begin that we make: none that a client gives can be taken for one."""


class Ids:
    """A random prefix for the process and a counter: 32 characters, never twice the same."""

    def __init__(self, start: str = "") -> None:
        self._prefix = start + secrets.token_hex(11)
        self._numbers = itertools.count()

    def new(self) -> str:
        """The next name."""
        return f"{self._prefix}{next(self._numbers):010x}"
