"""From bytes as they come to lines, each of bounded length."""

from dataclasses import dataclass

MAX_OF_TOO_LONG = 4096


@dataclass(frozen=True, slots=True)
class LineTooLong:
    """Stands for a line that was longer than it may be."""

    beginning: bytes
    ending: bytes
    """As much of it as is kept, for the id that may stand in either."""


Line = bytes | LineTooLong


class Splitter:
    """Cuts a stream of bytes at its line ends; empty lines are left out.

    Of a line that is too long only its beginning and its end are kept, so the longest line bounds
    the memory used.
    """

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._kept = bytearray()
        self._ending = b""
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk."""
        *ends, rest = chunk.split(b"\n")
        found: list[Line] = []
        for end in ends:
            self._keep(end)
            found += self.finish()
        self._keep(rest)
        return found

    def finish(self) -> list[Line]:
        """What is left when a line, or the stream, ends: one line or none."""
        line, ending, skipped = bytes(self._kept), self._ending, self._skipping
        self._kept.clear()
        self._ending, self._skipping = b"", False
        if skipped:
            return [LineTooLong(line, ending)]
        return [line] if line.strip() else []

    def _keep(self, piece: bytes) -> None:
        if self._skipping:
            self._ending = (self._ending + piece)[-MAX_OF_TOO_LONG:]
        elif len(self._kept) + len(piece) > self.longest:
            self._skipping = True
            self._kept += piece
            self._ending = bytes(self._kept[-MAX_OF_TOO_LONG:])
            del self._kept[MAX_OF_TOO_LONG:]
        else:
            self._kept += piece
