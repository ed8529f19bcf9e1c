"""Patterns that texts of documents must contain: matched in a thread, and no longer than allowed.

RE2 lets other threads run while it searches, so the event loop goes on; one thread of a process
searches at a time.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter
from anyio.lowlevel import RunVar

from toolgate.packs.backend.patterns import BadPattern, compiled
from toolgate.ports.documents import Fields, StoredDocument
from toolgate.ports.filters import field_at

WITH_FLAGS = re.compile(r"/(.*)/([a-z]*)", re.DOTALL)
FLAGS = {"i": "i", "m": "m", "s": "s", "g": "", "u": "", "y": ""}
"""Of JavaScript's expressions, and RE2's for them; some say how often to look, which is once."""
ALTERNATIVES = "||"
MAX_EFFORT = 500_000_000
"""Bytes of texts times instructions of the patterns they are searched for, of a whole call: about
four seconds of a core at worst, and far less for most patterns."""

Result = TypeVar("Result")


class TooMuchText(Exception):
    """A call would search for longer than it may."""


@dataclass(slots=True)
class Effort:
    """What searching may still take, of a whole call."""

    left: int = MAX_EFFORT

    def take(self, text: bytes, pattern: Any) -> None:
        """Count a search before it is done; raises `TooMuchText`."""
        self.left -= len(text) * pattern.programsize
        if self.left < 0:
            raise TooMuchText


class TextFilter(NamedTuple):
    """Passes documents in which one of these fields is a text that contains the pattern."""

    paths: list[list[str]]
    pattern: Any

    def passes(self, document: Fields, effort: Effort) -> bool:
        """Whether a document passes."""
        return any(self._is_in(field_at(document, path), effort) for path in self.paths)

    def _is_in(self, value: Any, effort: Effort) -> bool:
        if not isinstance(value, str):
            return False
        text = value.encode()
        effort.take(text, self.pattern)
        return self.pattern.search(text) is not None


def text_filter(fields: str, expression: str) -> TextFilter:
    """A filter of fields by an expression, also `/expression/flags`; raises `BadPattern`."""
    if written := WITH_FLAGS.fullmatch(expression):
        expression, flags = written.groups()
        if unknown := set(flags) - FLAGS.keys():
            raise BadPattern(f"unknown flag {min(unknown)!r}")
        if known := "".join(sorted({FLAGS[one] for one in flags})):
            expression = f"(?{known}){expression}"
    return TextFilter([name.split(".") for name in field_names(fields)], compiled(expression))


def field_names(fields: str) -> list[str]:
    """The fields that a filter names: `a || b` are two."""
    return [one.strip() for one in fields.split(ALTERNATIVES)]


def passing(
    documents: Sequence[StoredDocument], filters: Sequence[TextFilter], effort: Effort
) -> list[StoredDocument]:
    """The documents that pass all filters."""
    return [one for one in documents if all(each.passes(one.fields, effort) for each in filters)]


_turn = RunVar[CapacityLimiter]("toolgate_backend_search")


async def in_thread(work: Callable[[], Result]) -> Result:
    """What comes of work with patterns, once it is its turn."""
    try:
        turn = _turn.get()
    except LookupError:
        turn = CapacityLimiter(1)
        _turn.set(turn)
    return await anyio.to_thread.run_sync(work, limiter=turn)
