"""The images that a post refers to: in Markdown, and in HTML; not those in code."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
ADDRESS = r"[^\s()<>\"']*(?:\([^\s()<>\"']*\)[^\s()<>\"']*)*"
PATTERN = (
    r"(?P<code>``[^`]+``|`[^`]+`)"
    rf"|!\[(?P<alt>[^\[\]\n]*)\]\(\s*(?:<(?P<angled>[^<>\n]+)>|(?P<plain>{ADDRESS}))"
    r"(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)"
    r"|<[iI][mM][gG]\s(?:[^<>]*?\s)?[sS][rR][cC]\s*=\s*"
    r"(?:\"(?P<double>[^\"<>]*)\"|'(?P<single>[^'<>]*)'|(?P<bare>[^\s\"'<>]+))[^<>]*>"
)
PLACES = ("angled", "plain", "double", "single", "bare")


class ImageLink(NamedTuple):
    """A reference to an image on another server."""

    url: str
    alt: str
    start: int
    end: int
    """From where to where the URL is in the text."""


@cache
def _pattern() -> Any:
    # Its time grows with the text alone, whatever the text is; only who writes posts loads it.
    re2: Any = import_module("re2")  # it has no types
    return re2.compile(PATTERN)


def image_links(body: str, most: int | None = None) -> list[ImageLink]:
    """Every image in a text that lies on another server, in order; or the first so many."""
    every = (link for start, end in _prose(body) for link in _links(body[start:end], start))
    return list(islice(every, most))


def with_links(body: str, links: list[ImageLink], new_url: Callable[[ImageLink], str]) -> str:
    """The text with other URLs in these places."""
    parts: list[str] = []
    at = 0
    for link in links:
        parts += [body[at : link.start], new_url(link)]
        at = link.end
    return "".join([*parts, body[at:]])


def _links(text: str, offset: int) -> Iterator[ImageLink]:
    pattern = _pattern()
    places = [pattern.groupindex[name] for name in PLACES]
    for found in pattern.finditer(text):
        place = next((one for one in places if found.group(one)), None)
        if place is None:
            continue
        if url := _remote(unescape(found.group(place))):
            start, end = found.span(place)
            yield ImageLink(url, found.group("alt") or "", offset + start, offset + end)


def _remote(url: str) -> str | None:
    """The URL, if another server has it; what is relative, or has its bytes in it, stays."""
    lower = url.lower()
    if lower.startswith(("http://", "https://")):
        return url
    return f"https:{url}" if url.startswith("//") else None


def _prose(body: str) -> Iterator[tuple[int, int]]:
    """The parts of a text that are outside of fenced code."""
    fence: str | None = None
    begin = at = 0
    for line in body.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and fence is None:
            yield begin, at
            fence = mark.group(1)
        elif mark and fence and mark.group(1).startswith(fence):
            fence, begin = None, at + len(line)
        at += len(line)
    if fence is None:
        yield begin, at
