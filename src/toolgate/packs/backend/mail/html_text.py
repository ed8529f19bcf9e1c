"""The words of HTML that a caller brings, for the text part of a mail.

Read in one pass that never goes back, so that the work grows with the length alone, whatever the
HTML is: what is not closed reaches to the end, and a name or a number in it is read once.
"""

import re
from html.entities import html5

ENDING_A_LINE = frozenset({"p", "div", "tr", "li", "h1", "h2", "h3", "h4", "table", "ul", "ol"})
ENDING_A_PARAGRAPH = frozenset({"p", "table", "h1", "h2", "h3", "h4"})
UNSEEN = frozenset({"style", "script", "title", "textarea", "iframe", "noembed", "noframes", "xmp"})
"""Elements in which nothing is a tag but their own end; no mail program shows them as text."""
LINKS = ("http", "mailto:")
NAME = re.compile(r"[^\s/>]+")
BETWEEN = re.compile(r"[\s/]+")
BLANK = re.compile(r"\s+")
ATTRIBUTE = re.compile(r"=?[^\s/>=]*")
UNQUOTED = re.compile(r"[^\s>]*")
END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in UNSEEN}
REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z0-9]{1,31};?)")
LONGEST_NUMBER = 7
"""Digits of the largest character, U+10FFFF; a longer number is no character."""
NO_CHARACTER = "\ufffd"


def text_of_html(html: str) -> str:
    """The words of HTML, with the addresses of its links."""
    lines = [" ".join(line.split()) for line in TextReader(html).read().splitlines()]
    text, blank = list[str](), True
    for line in lines:
        if line or not blank:
            text.append(line)
        blank = not line
    return "\n".join(text).strip() + "\n"


class TextReader:
    """Reads HTML from its beginning to its end."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._at = 0
        self.looked_at = 0
        """Characters that were looked at; those that are looked at twice count twice."""
        self._parts: list[str] = []
        self._links: list[str] = []
        self._in_head = False

    def read(self) -> str:
        """The text, with a line break where the HTML begins a line."""
        while self._at < len(self._html):
            self._text(self._up_to("<"))
            if self._at < len(self._html):
                self._markup()
        return "".join(self._parts)

    def _markup(self) -> None:
        """What begins with `<`; a `<` that begins nothing is text."""
        html, at = self._html, self._at
        follower = html[at + 1 : at + 2]
        if follower.isascii() and follower.isalpha():
            self._at += 1
            self._open(*self._tag())
        elif html.startswith("</", at) and html[at + 2 : at + 3].isalpha():
            self._at += 2
            self._close(self._tag()[0])
        elif html.startswith(("<!-->", "<!--->"), at):
            self._past(">")
        elif html.startswith("<!--", at):
            self._at += 4
            self._past("-->")
        elif follower in {"!", "?", "/"}:
            self._past(">")
        else:
            self._text("<")
            self._at += 1

    def _tag(self) -> tuple[str, str]:
        """The name of a tag and its `href`; goes past its end."""
        name, href = self._match(NAME).lower(), None
        while self._at < len(self._html):
            self._match(BETWEEN)
            if self._html.startswith(">", self._at):
                self._at += 1
                return name, href or ""
            attribute, value = self._match(ATTRIBUTE), ""
            self._match(BLANK)
            if self._html.startswith("=", self._at):
                self._at += 1
                value = self._value()
            if href is None and attribute.lower() == "href":
                href = value
        return "", ""  # a tag that does not end is none

    def _value(self) -> str:
        self._match(BLANK)
        quote = self._html[self._at : self._at + 1]
        if quote not in {'"', "'"} or not quote:
            return self._match(UNQUOTED)
        self._at += 1
        value = self._up_to(quote)
        self._at += 1
        return value

    def _open(self, name: str, href: str) -> None:
        if name in UNSEEN:
            self._skip_to_end_of(name)
        elif name in {"head", "body"}:
            self._in_head = name == "head"
        elif name == "br":
            self._parts.append("\n")
        elif name == "a":
            self._links.append(with_characters(href).strip())

    def _close(self, name: str) -> None:
        if name == "head":
            self._in_head = False
        elif name == "a" and self._links:
            link = self._links.pop()
            self._parts.append(f" ({link})" if link.startswith(LINKS) else "")
        elif name in ENDING_A_LINE:
            self._parts.append("\n\n" if name in ENDING_A_PARAGRAPH else "\n")

    def _text(self, text: str) -> None:
        if text and not self._in_head:
            self._parts.append(with_characters(text.replace("\n", " ")))

    def _skip_to_end_of(self, name: str) -> None:
        end = END[name].search(self._html, self._at)
        self._go_to(end.start() if end else len(self._html))

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._html, self._at)
        self._go_to(found.end() if found else self._at)
        return found[0] if found else ""

    def _up_to(self, what: str) -> str:
        """The text before the next `what`, or all that is left."""
        start, end = self._at, self._html.find(what, self._at)
        self._go_to(end if end >= 0 else len(self._html))
        return self._html[start : self._at]

    def _past(self, what: str) -> None:
        self._up_to(what)
        self._at += len(what)

    def _go_to(self, end: int) -> None:
        self.looked_at += end - self._at + 1
        self._at = end


def with_characters(text: str) -> str:
    """The text with the characters that its references (`&amp;`) stand for.

    The standard library's function fails on a number of thousands of digits.
    """
    return REFERENCE.sub(_character, text) if "&" in text else text


def _character(reference: re.Match[str]) -> str:
    name = reference[0][1:]
    if name.startswith("#"):
        is_hex = name[1] in "xX"
        digits = name.strip("#xX;").lstrip("0") or "0"
        number = int(digits, 16 if is_hex else 10) if len(digits) <= LONGEST_NUMBER else 0
        known = 0 < number <= 0x10FFFF and not 0xD800 <= number <= 0xDFFF
        return chr(number) if known else NO_CHARACTER
    for length in range(len(name), 1, -1):  # `&notit;` is `&not` and `it;`
        if found := html5.get(name[:length]):
            return found + name[length:]
    return reference[0]
