"""Markdown as far as the audit needs it: which parts are code that a reader sees, which comments.

It reads from left to right and visits each part once, so a text costs what its length says. Where
renderers differ, a part counts as prose: prose is examined, code is not.
"""

import re
from dataclasses import dataclass, field

COMMENT_START, COMMENT_END = "<!--", "-->"
TOKEN = re.compile(
    r"(?P<comment><!--)"
    r"|(?m:^) {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*+)\n"
    r"|(?P<ticks>`++)"
    r"""|</?[A-Za-z][\w-]*+(?:\s++[\w:@.-]++(?:=(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?)*+\s*+/?>"""
)
"""Whatever begins first decides how what follows is read."""
FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*+$", re.MULTILINE)
TICKS = re.compile(r"`++|\n")


@dataclass(slots=True)
class Markdown:
    """A text in its parts."""

    prose: str = ""
    """All but code and comments."""
    comments: list[str] = field(default_factory=list[str])
    """What stands between the marks of comments; of one without an end, the rest of the text."""


def parsed(text: str) -> Markdown:
    """The parts of a text."""
    found = Markdown()
    prose: list[str] = []
    inline, fences = _inline_ends(text), _Fences(text)
    position = 0
    while token := TOKEN.search(text, position):
        end = token.end()
        kept = token[0]
        if token["comment"]:
            closed = text.find(COMMENT_END, end)
            found.comments.append(text[end:closed] if closed >= 0 else text[end:])
            end = closed + len(COMMENT_END) if closed >= 0 else len(text)
            kept = " "
        elif token["fence"] and (after := fences.end_of(token)):
            end, kept = after, "\n"
        elif run := token["fence"] or token["ticks"]:
            # A fence that nothing closes may be inline code; else it is prose.
            start = token.start("fence" if token["fence"] else "ticks")
            end, kept = inline.get(start, start + len(run)), " "
        prose += text[position : token.start()], kept
        position = end
    prose.append(text[position:])
    found.prose = "".join(prose)
    return found


def _inline_ends(text: str) -> dict[int, int]:
    """Where the inline code ends that begins at a run of backticks: at the next as long a run."""
    ends: dict[int, int] = {}
    last: dict[int, int] = {}
    for run in TICKS.finditer(text):
        if run[0] == "\n":
            last.clear()
            continue
        length = len(run[0])
        if (start := last.get(length)) is not None and text[start - 1 : start] != "\\":
            ends[start] = run.end()
        last[length] = run.start()
    return ends


class _Fences:
    """Where blocks of code end."""

    def __init__(self, text: str) -> None:
        self._lines = [(one.start(), one.end(), one[1]) for one in FENCE_LINE.finditer(text)]
        self._next = 0
        longest = {"`": 0, "~": 0}
        self._longest: list[dict[str, int]] = []
        for _, _, run in reversed(self._lines):
            longest = {**longest, run[0]: max(longest[run[0]], len(run))}
            self._longest.append(longest)
        self._longest.reverse()

    def end_of(self, opening: re.Match[str]) -> int | None:
        """Where the block ends that is opened here; None where nothing closes it."""
        run = opening["fence"]
        while self._next < len(self._lines) and self._lines[self._next][0] < opening.end():
            self._next += 1
        if "`" in opening["info"] and run[0] == "`":
            return None
        # Asked first: only blocks that are closed, and thus passed over, are walked through.
        if self._next == len(self._lines) or self._longest[self._next][run[0]] < len(run):
            return None
        while True:
            _, end, closing = self._lines[self._next]
            self._next += 1
            if closing[0] == run[0] and len(closing) >= len(run):
                return end
