"""What a text holds in Base64 and in hexadecimal digits, as far as it is readable."""

import base64
import binascii
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolgate.packs.orchestrator.skills.plain_text import Span

ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}(?![A-Za-z0-9+/=_-])")
LINE = re.compile(r"[^\n]++")
ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{4,}+={0,2}")
ENCODED_END = re.compile(r"[A-Za-z0-9+/_-]{1,3}={0,2}")
HEXADECIMAL = re.compile(r"(?<![0-9a-fA-F])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ ,:]?){16,}+")
HEX_DIGITS = re.compile(r"(?:0x|\\x)?([0-9a-fA-F]{2})")
MAX_LAYERS = 3
READABLE = 0.9
LEAST_NULS = 0.3
"""Of the bytes of a text in UTF-16 that is of Latin letters."""


@dataclass(slots=True)
class Decoded:
    """What was encoded in a text, one under the other, and where each piece of it stood."""

    text: str = ""
    _starts: list[int] = field(default_factory=list[int])
    _spans: list[Span] = field(default_factory=list[Span])

    @classmethod
    def of(cls, pieces: Iterator[tuple[str, Span]]) -> "Decoded":
        """The pieces in one."""
        made, position, texts = cls(), 0, list[str]()
        for text, span in pieces:
            made._starts.append(position)
            made._spans.append(span)
            texts.append(text)
            position += len(text) + 1
        made.text = "\n".join(texts)
        return made

    def origin_of(self, span: Span) -> Span:
        """Where what stands here is encoded."""
        first = bisect_right(self._starts, span[0]) - 1
        return self._spans[first]


def decoded(text: str) -> Iterator[Decoded]:
    """What is readable, layer by layer; of inner layers, where the outermost stands."""
    layer = Decoded.of(_readable(text))
    for _ in range(MAX_LAYERS):
        if not layer.text:
            return
        yield layer
        outer = layer
        layer = Decoded.of((inner, outer.origin_of(span)) for inner, span in _readable(outer.text))


def _readable(text: str) -> Iterator[tuple[str, Span]]:
    for found in ENCODED.finditer(text):
        yield from ((one, found.span()) for one in _from_base64(found[0]))
    for block, span in _encoded_lines(text):
        yield from ((one, span) for one in _from_base64(block))
    for found in HEXADECIMAL.finditer(text):
        content = bytes.fromhex("".join(HEX_DIGITS.findall(found[0])))
        yield from ((one, found.span()) for one in _as_text(content))


def _encoded_lines(text: str) -> Iterator[tuple[str, Span]]:
    """Lines in a row that hold nothing but Base64, joined."""
    block: list[str] = []
    start = end = 0
    for line in LINE.finditer(text + "\n."):
        bare = line[0].strip(" \t>*-|`\r")
        is_next = not block or line.start() == end + 1
        if is_next and ENCODED_LINE.fullmatch(bare):
            start = start if block else line.start()
            block.append(bare)
            end = line.end()
            continue
        if len(block) > 1:
            yield "".join(block), (start, end)
        if block and is_next and ENCODED_END.fullmatch(bare):
            yield "".join([*block, bare]), (start, line.end())
        block = []
        if ENCODED_LINE.fullmatch(bare):
            block, start, end = [bare], line.start(), line.end()


def _from_base64(run: str) -> Iterator[str]:
    digits = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        yield from _as_text(base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True))
    except binascii.Error:
        return


def _as_text(content: bytes) -> Iterator[str]:
    encoding = "utf-8"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    elif content.count(0) >= LEAST_NULS * len(content):
        encoding = "utf-16-be" if content[:1] == b"\0" else "utf-16-le"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return
    if sum(one.isprintable() or one.isspace() for one in text) >= READABLE * len(text):
        yield text
