"""From bytes as they come to lines, each of bounded length."""


class TooLong:
    """Stands for a line that was longer than it may be."""


Line = bytes | TooLong


class Splitter:
    """Cuts a stream of bytes at its line ends; empty lines are left out.

    Of a line that is too long nothing is kept, so the longest line bounds the memory used.
    """

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._kept = bytearray()
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
        line, skipped = bytes(self._kept), self._skipping
        self._kept.clear()
        self._skipping = False
        if skipped:
            return [TooLong()]
        return [line] if line.strip() else []

    def _keep(self, piece: bytes) -> None:
        if self._skipping or len(self._kept) + len(piece) > self.longest:
            self._skipping = True
            self._kept.clear()
        else:
            self._kept += piece
