"""Markdown as far as the audit needs it: which parts are code that a reader sees, which comments.

It reads from left to right and visits each part once, so a text costs what its length says. Where
renderers differ, a part counts as prose: prose is examined, code is not.
"""

import re
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"(?P<comment><!--|<!\[CDATA\[|<\?|<![A-Za-z])"
    r"|(?m:^) {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*+)\n"
    r"|(?P<ticks>`++)"
    r"""|</?[A-Za-z][\w-]*+(?:\s++[\w:@.-]++(?:=(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?)*+\s*+/?>"""
)
"""Whatever begins first decides how what follows is read."""
COMMENT_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": ">"}
"""Of other declarations, such as `<!X …>`, the next `>`."""
HTML_BLOCK = re.compile(
    r"^ {0,3}(?:</?(?:address|article|aside|blockquote|body|center|dd|details|dialog|div|dl|dt|"
    r"fieldset|figure|footer|form|h[1-6]|head|header|html|li|main|nav|ol|p|section|summary|table|"
    r"tbody|td|tfoot|th|thead|tr|ul)\b|</?[A-Za-z][^<>\n]{0,300}>[ \t]*+$)",
    re.MULTILINE | re.IGNORECASE,
)
"""Where one begins; up to the next blank line there is no code, but HTML."""
BLANK_LINE = re.compile(r"\n[ \t]*+\n")
FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*+$", re.MULTILINE)
TICKS = re.compile(r"`++|\n")
NO_LINE_BREAK = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Comment:
    """What renderers leave out: a comment, an instruction, a declaration."""

    start: int
    end: int
    opening: str
    content: str


@dataclass(slots=True)
class Markdown:
    """A text in its parts."""

    prose: str = ""
    """The text with blanks for code and comments: what is left stands where it stood."""
    comments: list[Comment] = field(default_factory=list[Comment])
    """Of one without an end, the rest of the text."""


def parsed(text: str) -> Markdown:
    """The parts of a text."""
    found = Markdown()
    prose: list[str] = []
    inline, fences, blocks = _inline_ends(text), _Fences(text), _HtmlBlocks(text)
    position = 0
    while token := TOKEN.search(text, position):
        end = token.end()
        left_out = False
        if token["comment"]:
            comment = _comment(text, token)
            found.comments.append(comment)
            end, left_out = comment.end, True
        elif blocks.hold(token.start()):
            pass
        elif token["fence"] and (after := fences.end_of(token)):
            end, left_out = after, True
        elif run := token["fence"] or token["ticks"]:
            # A fence that nothing closes may be inline code; else it is prose.
            start = token.start("fence" if token["fence"] else "ticks")
            end, left_out = inline.get(start, start + len(run)), True
        part = text[token.start() : end]
        prose += text[position : token.start()], NO_LINE_BREAK.sub(" ", part) if left_out else part
        position = end
    prose.append(text[position:])
    found.prose = "".join(prose)
    return found


def _comment(text: str, token: re.Match[str]) -> Comment:
    closing = COMMENT_ENDS.get(token[0], ">")
    # Of a declaration the letter belongs to its content.
    inner = token.end() if token[0] in COMMENT_ENDS else token.end() - 1
    closed = text.find(closing, inner)
    end = len(text) if closed < 0 else closed + len(closing)
    content = text[inner:] if closed < 0 else text[inner:closed]
    return Comment(token.start(), end, text[token.start() : inner], content)


class _HtmlBlocks:
    """Which places are in blocks of HTML; asked from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = HTML_BLOCK.finditer(text)
        self._start = self._end = -1
        self._over = False

    def hold(self, place: int) -> bool:
        """Whether this place is in one."""
        while not self._over and self._end <= place:
            found = next(self._starts, None)
            if found is None:
                self._over = True
                return False
            if found.end() <= self._end:
                continue
            blank = BLANK_LINE.search(self._text, found.start())
            self._start, self._end = found.start(), blank.start() if blank else len(self._text)
        return self._start <= place < self._end


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
