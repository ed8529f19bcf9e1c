"""Names for requests and audit rows: unique everywhere, without asking the kernel each time."""

import itertools
import secrets


class Ids:
    """A random prefix for the process and a counter: 32 characters, never twice the same."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(11)
        self._numbers = itertools.count()

    def new(self) -> str:
        """The next name."""
        return f"{self._prefix}{next(self._numbers):010x}"
